mod client;

use client::{Answer, Client, start};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

fn list(agent: &mut Client, params: Value) -> (Vec<Value>, Answer) {
    let (bytes, answer) = agent.collect("file.list", params);
    let text = String::from_utf8(bytes).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), answer)
}

fn paths(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

#[test]
fn lists_entries_with_their_attributes() {
    let (home, mut agent) = start("list-kinds");
    fs::write(home.join("file"), "12345").unwrap();
    fs::set_permissions(home.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(home.join("dir")).unwrap();
    symlink("nowhere", home.join("link")).unwrap();
    let (entries, answer) = list(&mut agent, json!({ "path": ".", "window": 1 << 20 }));
    assert_eq!(answer, Ok(json!({ "count": 3 })));
    assert_eq!(paths(&entries), ["dir", "file", "link"]);
    assert_eq!((&entries[0]["kind"], &entries[1]["kind"]), (&json!("directory"), &json!("file")));
    assert_eq!((&entries[1]["size"], &entries[1]["mode"]), (&json!(5), &json!(0o640)));
    assert_eq!((&entries[2]["kind"], &entries[2]["target"]), (&json!("symlink"), &json!("nowhere")));
    assert!(entries[1]["modified_at_ms"].as_f64().unwrap() > 1e12);
    assert_eq!(entries[1].get("target"), None);
}

#[test]
fn lists_a_tree_sorted_by_path_up_to_the_given_depth() {
    let (home, mut agent) = start("list-depth");
    for dir in ["a/b/c", "a-x", "aa"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    for file in ["a.txt", "a/file", "a/b/c/deep", "a0"] {
        fs::write(home.join(file), "").unwrap();
    }
    symlink("a", home.join("link-to-a")).unwrap();
    let everything = ["a", "a-x", "a.txt", "a/b", "a/b/c", "a/b/c/deep", "a/file", "a0", "aa", "link-to-a"];
    let (entries, answer) = list(&mut agent, json!({ "path": ".", "depth": 0, "window": 1 << 20 }));
    assert_eq!((paths(&entries), answer), (everything.to_vec(), Ok(json!({ "count": 10 }))));
    assert!(everything.is_sorted());
    let (entries, _) = list(&mut agent, json!({ "path": ".", "depth": 2, "window": 1 << 20 }));
    assert_eq!(paths(&entries), ["a", "a-x", "a.txt", "a/b", "a/file", "a0", "aa", "link-to-a"]);
    let (entries, _) = list(&mut agent, json!({ "path": "a", "window": 1 << 20 }));
    assert_eq!(paths(&entries), ["b", "file"]);
}

#[test]
fn never_splits_a_line_and_waits_for_credit() {
    let (home, mut agent) = start("list-window");
    for number in 0..100 {
        fs::write(home.join(format!("file-{number:03}")), "").unwrap();
    }
    let call = agent.begin("file.list", json!({ "path": ".", "window": 1000 }));
    let mut count = 0;
    let answer = agent.for_each_piece(call, |_, bytes| {
        assert!(bytes.len() <= 1000 && bytes.ends_with(b"\n"));
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(entry["path"], format!("file-{count:03}"));
            count += 1;
        }
    });
    assert_eq!((answer, count), (Ok(json!({ "count": 100 })), 100));
}

#[test]
fn refuses_a_window_too_small_for_one_line() {
    let (home, mut agent) = start("list-tiny");
    fs::write(home.join("file"), "").unwrap();
    let (_, answer) = list(&mut agent, json!({ "path": ".", "window": 20 }));
    assert_eq!(answer.unwrap_err().reason, "window_too_small");
}

#[test]
fn shows_replacement_characters_in_names_that_are_not_utf_8() {
    let (home, mut agent) = start("list-names");
    fs::write(home.join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    fs::write(home.join("with \"quotes\"\nand a line"), "").unwrap();
    let (entries, _) = list(&mut agent, json!({ "path": ".", "window": 1 << 20 }));
    assert_eq!(paths(&entries), ["caf\u{fffd}", "with \"quotes\"\nand a line"]);
}

#[test]
fn lists_a_directory_larger_than_one_batch_complete_and_sorted() {
    let (home, mut agent) = start("list-huge");
    let dir = home.join("d".repeat(200));
    fs::create_dir(&dir).unwrap();
    // Three levels down a batch holds 1 MiB of names, and these take about 3 MiB.
    let deep = dir.join("x/y");
    fs::create_dir_all(&deep).unwrap();
    let count = 12_000;
    for number in 0..count {
        let name = format!("{:05}-{}", number * 7919 % count, "n".repeat(200));
        fs::File::create(deep.join(name)).unwrap();
    }
    let (entries, answer) = list(&mut agent, json!({ "path": ".", "depth": 0, "window": 1 << 20 }));
    assert_eq!(answer, Ok(json!({ "count": count + 3 })));
    assert!(paths(&entries).windows(2).all(|pair| pair[0] < pair[1]));
    assert!(agent.peak_memory_kib() < 16 * 1024, "{} KiB", agent.peak_memory_kib());
}

#[test]
fn answers_other_calls_while_it_lists_a_large_tree() {
    let (home, mut agent) = start("list-turns");
    for number in 0..8_000 {
        fs::File::create(home.join(format!("file-{number}"))).unwrap();
    }
    let listing = agent.begin("file.list", json!({ "path": ".", "window": 64 << 20 }));
    let ping = agent.begin("ping", json!({}));
    // The agent gets the ping after the listing and must answer it before the listing ends.
    loop {
        let frame = agent.frame();
        match frame.message.get("id") {
            Some(id) if *id == json!(ping) => break,
            Some(id) => assert_ne!(*id, json!(listing), "the listing was answered before the ping"),
            None => {}
        }
    }
    assert_eq!(agent.answer(listing), Ok(json!({ "count": 8_000 })));
}

#[test]
fn lists_a_changing_tree_with_unreadable_parts() {
    let (_home, mut agent) = start("list-proc");
    let (entries, answer) = list(&mut agent, json!({ "path": "/proc", "depth": 3, "window": 1 << 20 }));
    assert!(answer.unwrap()["count"].as_u64().unwrap() > 100);
    assert!(paths(&entries).contains(&format!("{}/status", agent.stream.child.id()).as_str()));
}

#[test]
fn refuses_to_list_a_path_that_is_not_a_directory() {
    let (home, mut agent) = start("list-refused");
    fs::write(home.join("file"), "").unwrap();
    for (path, code, reason) in
        [("file", "failed_precondition", "not_a_directory"), ("missing", "not_found", "no_such_file")]
    {
        agent.assert_refuses("file.list", json!({ "path": path, "window": 1 }), code, reason);
    }
}

#[test]
fn describes_the_target_or_the_symlink_itself() {
    let (home, mut agent) = start("stat");
    fs::write(home.join("file"), "12345").unwrap();
    symlink("file", home.join("link")).unwrap();
    symlink("missing", home.join("dangling")).unwrap();
    let stat = agent.call("file.stat", json!({ "path": "link" })).unwrap();
    assert_eq!((&stat["kind"], &stat["size"]), (&json!("file"), &json!(5)));
    assert_eq!(stat["path"], json!(home.join("link")));
    let stat = agent.call("file.stat", json!({ "path": "./link", "follow": false })).unwrap();
    assert_eq!((&stat["kind"], &stat["target"]), (&json!("symlink"), &json!("file")));
    let stat = agent.call("file.stat", json!({ "path": "/dev/null" })).unwrap();
    assert_eq!(stat["kind"], "char_device");
    assert_eq!(agent.call("file.stat", json!({ "path": "dangling" })).unwrap_err().reason, "no_such_file");
    assert_eq!(agent.call("file.stat", json!({ "path": "file/x" })).unwrap_err().reason, "not_a_directory");
}
