//! A home with a second, small filesystem in it: full disks, and moves between filesystems.

mod client;

use client::agent::{PROGRAM, TempDir, is_root, make_fifo};
use client::{Client, assert_refused};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

/// An agent with a private filesystem of 2 MiB at `small` in its home.
fn start(name: &str) -> (TempDir, Client) {
    let home = TempDir::new(name);
    fs::create_dir(home.join("small")).unwrap();
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("--map-root-user");
    }
    let script = "mount -t tmpfs -o size=2m tmpfs small && exec \"$0\" --exit-on-eof";
    command.args(["--mount", "sh", "-c", script, PROGRAM]).env("HOME", &*home).current_dir(&*home);
    let client = Client::spawn(&mut command);
    (home, client)
}

fn names(agent: &mut Client, path: &str) -> Vec<String> {
    let answer = agent.call("list_dir", json!({ "path": path })).unwrap();
    answer["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_string()).collect()
}

fn stat(agent: &mut Client, path: &str) -> Value {
    agent.call("file.stat", json!({ "path": path, "follow": false })).unwrap()
}

#[test]
fn keeps_the_old_file_and_reports_a_full_disk() {
    let (_home, mut agent) = start("full");
    agent.write_file(json!({ "path": "small/file" }), b"old").unwrap();
    assert_refused(
        agent.write_file(json!({ "path": "small/file" }), &vec![b'x'; 4 << 20]),
        "resource_exhausted",
        "disk_full",
    );
    assert_eq!(agent.call("read_file", json!({ "path": "small/file" })), Ok(json!({ "content": "old" })));
    assert_eq!(names(&mut agent, "small"), ["file"]);
    agent.write_file(json!({ "path": "small/file" }), &vec![b'x'; 1 << 20]).unwrap();
}

#[test]
fn moves_a_tree_unchanged_to_another_filesystem() {
    let (home, mut agent) = start("transfer");
    let tree = home.join("tree");
    fs::create_dir_all(tree.join("sub/empty")).unwrap();
    fs::write(tree.join("file"), vec![b'x'; 300_000]).unwrap();
    fs::write(tree.join("sub/script"), "#!").unwrap();
    fs::set_permissions(tree.join("sub/script"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(tree.join("sub"), fs::Permissions::from_mode(0o711)).unwrap();
    symlink("../file", tree.join("sub/link")).unwrap();
    make_fifo(&tree.join("fifo"));
    let modified = fs::metadata(tree.join("sub")).unwrap().mtime();
    assert_eq!(agent.call("file.move", json!({ "from": "tree", "to": "small/moved" })), Ok(json!({})));
    assert!(!tree.exists());
    assert_eq!(names(&mut agent, "small"), ["moved"]);
    assert_eq!(names(&mut agent, "small/moved"), ["fifo", "file", "sub"]);
    assert_eq!(names(&mut agent, "small/moved/sub"), ["empty", "link", "script"]);
    assert_eq!(stat(&mut agent, "small/moved/file")["size"], 300_000);
    assert_eq!(stat(&mut agent, "small/moved/sub/script")["mode"], 0o750);
    assert_eq!(stat(&mut agent, "small/moved/sub/link")["target"], "../file");
    assert_eq!((&stat(&mut agent, "small/moved/fifo")["kind"]), "fifo");
    let sub = stat(&mut agent, "small/moved/sub");
    assert_eq!((&sub["mode"], sub["modified_at_ms"].as_f64().unwrap() as i64 / 1000), (&json!(0o711), modified));
}

#[test]
fn replaces_an_entry_on_another_filesystem_only_with_overwrite() {
    let (home, mut agent) = start("transfer-overwrite");
    fs::write(home.join("new"), "new").unwrap();
    agent.write_file(json!({ "path": "small/old" }), b"old").unwrap();
    let failure = agent.call("file.move", json!({ "from": "new", "to": "small/old" })).unwrap_err();
    assert_eq!(failure.reason, "file_exists");
    assert_eq!(names(&mut agent, "small"), ["old"]);
    agent.call("file.move", json!({ "from": "new", "to": "small/old", "overwrite": true })).unwrap();
    assert_eq!(agent.call("read_file", json!({ "path": "small/old" })), Ok(json!({ "content": "new" })));
    assert!(!home.join("new").exists());
}

#[test]
fn keeps_the_source_and_removes_the_copy_when_a_move_does_not_fit() {
    let (home, mut agent) = start("transfer-full");
    fs::create_dir(home.join("tree")).unwrap();
    for number in 0..8 {
        fs::write(home.join(format!("tree/{number}")), vec![b'x'; 500_000]).unwrap();
    }
    agent.assert_refuses("file.move", json!({ "from": "tree", "to": "small/tree" }), "resource_exhausted", "disk_full");
    assert_eq!(fs::read_dir(home.join("tree")).unwrap().count(), 8);
    // The agent removes the copy in the background.
    while !names(&mut agent, "small").is_empty() {}
    agent.write_file(json!({ "path": "small/file" }), &vec![b'x'; 1 << 20]).unwrap();
}

#[test]
fn refuses_to_move_a_directory_into_itself_across_filesystems() {
    let (home, mut agent) = start("transfer-inside");
    agent.call("file.mkdir", json!({ "path": "small/x" })).unwrap();
    let (from, to) = (home.to_str().unwrap(), home.join("small/x/y"));
    let failure = agent.call("file.move", json!({ "from": from, "to": to })).unwrap_err();
    assert_eq!(failure.reason, "bad_path");
    assert_eq!(names(&mut agent, "small/x"), Vec::<String>::new());
}
