mod client;

use client::agent::{lacks_root, mode};
use client::{Client, Event, assert_refused, start};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Opens a write and sends the first part of the contents.
fn begin_write(agent: &mut Client, path: &str, contents: &[u8]) -> u64 {
    let call = agent.begin("file.write", json!({ "path": path }));
    assert_eq!(agent.event(call), Event::Credit(2 * 960 * 1024));
    agent.data(call, contents);
    // The agent answers the ping after the bytes have reached the file.
    agent.call("ping", json!({})).unwrap();
    call
}

#[test]
fn writes_bytes_of_every_value_and_creates_missing_parents() {
    let (home, mut agent) = start("write-new");
    let contents: Vec<u8> = (0..=255).cycle().take(3_000_001).collect();
    let answer = agent.write_file(json!({ "path": "a/b/c.bin" }), &contents);
    assert_eq!(answer, Ok(json!({ "size": contents.len() })));
    let path = home.join("a/b/c.bin");
    assert!(fs::read(&path).unwrap() == contents);
    assert_eq!((mode(&path), mode(&home.join("a"))), (0o644, 0o755));
    assert_eq!(names(&home.join("a/b")), ["c.bin"]);
    assert_eq!(names(&home), ["a"]);
}

#[test]
fn writes_an_empty_file() {
    let (home, mut agent) = start("write-empty");
    assert_eq!(agent.write_file(json!({ "path": "empty" }), b""), Ok(json!({ "size": 0 })));
    assert_eq!(fs::read(home.join("empty")).unwrap(), b"");
}

#[test]
fn keeps_the_mode_of_a_replaced_file_unless_the_call_sets_one() {
    let (home, mut agent) = start("write-mode");
    let path = home.join("script");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
    agent.write_file(json!({ "path": "script" }), b"new").unwrap();
    assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (b"new".as_slice(), 0o4750));
    agent.write_file(json!({ "path": "script", "mode": 0o600 }), b"newer").unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn sets_the_given_owner_and_otherwise_keeps_the_replaced_files_owner() {
    if lacks_root("changing the owner of files needs root") {
        return;
    }
    let (home, mut agent) = start("write-owner");
    let path = home.join("theirs");
    let owner = || fs::metadata(&path).map(|stat| (stat.uid(), stat.gid())).unwrap();
    agent.write_file(json!({ "path": "theirs", "owner": "12345:54321" }), b"1").unwrap();
    assert_eq!(owner(), (12345, 54321));
    agent.write_file(json!({ "path": "theirs" }), b"2").unwrap();
    assert_eq!(owner(), (12345, 54321));
    agent.write_file(json!({ "path": "theirs", "owner": "0:0" }), b"3").unwrap();
    assert_eq!(owner(), (0, 0));
    assert_refused(
        agent.write_file(json!({ "path": "theirs", "owner": "no-such-user" }), b"4"),
        "invalid_argument",
        "unknown_user",
    );
    assert_eq!(fs::read(&path).unwrap(), b"3");
}

#[test]
fn writes_through_a_symlink_also_to_a_missing_target() {
    let (home, mut agent) = start("write-link");
    fs::create_dir(home.join("real")).unwrap();
    fs::write(home.join("real/file"), "old").unwrap();
    symlink("real/file", home.join("link")).unwrap();
    symlink("link", home.join("link-to-link")).unwrap();
    symlink("real/new", home.join("dangling")).unwrap();
    symlink("loop", home.join("loop")).unwrap();
    agent.write_file(json!({ "path": "link-to-link" }), b"new").unwrap();
    agent.write_file(json!({ "path": "dangling" }), b"fresh").unwrap();
    assert_eq!(fs::read(home.join("real/file")).unwrap(), b"new");
    assert_eq!(fs::read(home.join("real/new")).unwrap(), b"fresh");
    assert!(fs::symlink_metadata(home.join("link")).unwrap().is_symlink());
    let failure = agent.write_file(json!({ "path": "loop" }), b"x").unwrap_err();
    assert_eq!(failure.reason, "bad_path");
}

#[test]
fn shows_readers_the_old_contents_until_the_write_is_complete() {
    let (home, mut agent) = start("write-atomic");
    let path = home.join("file");
    fs::write(&path, "old").unwrap();
    let call = begin_write(&mut agent, "file", b"half of the new");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    agent.end(call);
    assert_eq!(agent.answer(call), Ok(json!({ "size": 15 })));
    assert_eq!(fs::read(&path).unwrap(), b"half of the new");
}

#[test]
fn leaves_only_the_old_file_after_a_canceled_write() {
    let (home, mut agent) = start("write-cancel");
    fs::write(home.join("file"), "old").unwrap();
    let replacing = begin_write(&mut agent, "file", b"new");
    let creating = begin_write(&mut agent, "new/parents/file", b"new");
    assert_eq!(names(&home).len(), 3);
    for call in [replacing, creating] {
        agent.assert_cancels(call);
    }
    // Answers come in order, so the cancels have completed by now.
    agent.call("ping", json!({})).unwrap();
    assert_eq!(names(&home), ["file"]);
    assert_eq!(fs::read(home.join("file")).unwrap(), b"old");
}

#[test]
fn leaves_no_partial_file_when_the_caller_disconnects() {
    let (home, mut agent) = start("write-gone");
    begin_write(&mut agent, "file", b"half");
    assert_eq!(names(&home).len(), 1);
    agent.stream.close_input();
    assert!(agent.stream.child.wait().unwrap().success());
    assert_eq!(names(&home), Vec::<String>::new());
}

#[test]
fn ends_a_write_that_exceeds_its_grant() {
    let (home, mut agent) = start("write-window");
    // In one piece, so that the bytes arrive before the agent grants any.
    agent.write(
        b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"file.write\",\"params\":{\"path\":\"file\"}}\n\
          {\"jsonrpc\":\"2.0\",\"method\":\"stream.data\",\"params\":{\"call\":77},\"bytes\":1}\nx\n",
    );
    assert_refused(agent.answer(77), "resource_exhausted", "window_exceeded");
    agent.call("ping", json!({})).unwrap();
    assert_eq!(names(&home), Vec::<String>::new());
}

#[test]
fn reports_why_a_file_cannot_be_written() {
    let (home, mut agent) = start("write-refused");
    fs::create_dir(home.join("dir")).unwrap();
    fs::write(home.join("file"), "").unwrap();
    let cases = [
        (json!({ "path": "dir" }), "failed_precondition", "is_a_directory"),
        (json!({ "path": "/" }), "failed_precondition", "is_a_directory"),
        (json!({ "path": "file/below" }), "failed_precondition", "not_a_directory"),
        (json!({ "path": "/dev/null" }), "failed_precondition", "not_a_file"),
        (json!({ "path": "" }), "invalid_argument", "bad_path"),
        (json!({ "path": "a\u{0}b" }), "invalid_argument", "bad_path"),
        (json!({ "path": "x".repeat(4097) }), "invalid_argument", "bad_path"),
        (json!({ "path": "x".repeat(300) }), "invalid_argument", "bad_path"),
        (json!({ "path": "file", "mode": 0o10000 }), "invalid_argument", "bad_params"),
        (json!({}), "invalid_argument", "bad_params"),
    ];
    for (params, code, reason) in cases {
        println!("{params}");
        assert_refused(agent.write_file(params, b""), code, reason);
    }
}
