mod client;

use client::agent::make_fifo;
use client::{Event, start};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

fn numbers(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn reads_a_whole_file_or_a_range() {
    let (home, mut agent) = start("read-range");
    let contents = numbers(1_000_003);
    fs::write(home.join("file"), &contents).unwrap();
    let cases = [
        (json!({}), 0..1_000_003),
        (json!({ "offset": 5 }), 5..1_000_003),
        (json!({ "offset": 5, "length": 300_000 }), 5..300_005),
        (json!({ "length": 0 }), 0..0),
        (json!({ "offset": 999_999, "length": 1_000_000 }), 999_999..1_000_003),
        (json!({ "offset": 5_000_000 }), 0..0),
    ];
    for (mut params, range) in cases {
        params["path"] = json!("file");
        params["window"] = json!(100_000);
        let (bytes, answer) = agent.collect("file.read", params.clone());
        assert_eq!(answer, Ok(json!({ "size": range.len() })), "{params}");
        assert!(bytes == contents[range], "{params}");
    }
}

#[test]
fn sends_no_more_than_granted_and_needs_no_credit_for_the_end() {
    let (home, mut agent) = start("read-window");
    let contents = numbers(10_000);
    fs::write(home.join("file"), &contents).unwrap();
    let call = agent.begin("file.read", json!({ "path": "file", "window": 6_000 }));
    let first = agent.read_exactly(call, 6_000);
    agent.assert_silent(call);
    agent.credit(call, 4_000);
    let second = agent.read_exactly(call, 4_000);
    assert_eq!(agent.event(call), Event::Answer(Ok(json!({ "size": 10_000 }))));
    assert!([first, second].concat() == contents);
}

#[test]
fn sends_a_file_in_messages_of_at_most_960_kib() {
    let (home, mut agent) = start("read-chunks");
    fs::write(home.join("file"), numbers(1_000_000)).unwrap();
    let call = agent.begin("file.read", json!({ "path": "file", "window": 1 << 22 }));
    let mut sizes = Vec::new();
    while let Event::Data { bytes, .. } = agent.event(call) {
        sizes.push(bytes.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 1_000_000);
    assert!(sizes.iter().all(|size| *size <= 960 * 1024), "{sizes:?}");
}

#[test]
fn reads_a_file_of_unknown_size_to_its_end() {
    let (_home, mut agent) = start("read-proc");
    let (bytes, answer) = agent.collect("file.read", json!({ "path": "/proc/self/status", "window": 1 << 20 }));
    assert!(String::from_utf8(bytes).unwrap().starts_with("Name:\tsandpiper-agent"));
    assert!(answer.unwrap()["size"].as_u64().unwrap() > 100);
}

#[test]
fn reads_through_a_symlink() {
    let (home, mut agent) = start("read-link");
    fs::write(home.join("file"), "contents").unwrap();
    symlink("file", home.join("link")).unwrap();
    let read = agent.collect("file.read", json!({ "path": "link", "window": 100 }));
    assert_eq!(read, (b"contents".to_vec(), Ok(json!({ "size": 8 }))));
}

#[test]
fn answers_a_canceled_read_and_keeps_the_channel_working() {
    let (home, mut agent) = start("read-cancel");
    fs::write(home.join("file"), numbers(100_000)).unwrap();
    let call = agent.begin("file.read", json!({ "path": "file", "window": 10 }));
    assert!(matches!(agent.event(call), Event::Data { .. }));
    agent.assert_cancels(call);
    agent.call("ping", json!({})).unwrap();
}

#[test]
fn refuses_to_read_directories_and_special_files_without_blocking() {
    let (home, mut agent) = start("read-refused");
    make_fifo(&home.join("fifo"));
    let _listener = UnixListener::bind(home.join("socket")).unwrap();
    let cases = [
        (json!({ "path": "fifo", "window": 1 }), "failed_precondition", "not_a_file"),
        (json!({ "path": "socket", "window": 1 }), "failed_precondition", "not_a_file"),
        (json!({ "path": "/dev/zero", "window": 1 }), "failed_precondition", "not_a_file"),
        (json!({ "path": ".", "window": 1 }), "failed_precondition", "is_a_directory"),
        (json!({ "path": "missing", "window": 1 }), "not_found", "no_such_file"),
        (json!({ "path": "missing", "window": 0 }), "invalid_argument", "bad_params"),
        (json!({ "path": "missing", "window": (64 << 20) + 1 }), "invalid_argument", "bad_params"),
        (json!({ "path": "missing" }), "invalid_argument", "bad_params"),
        (json!({ "path": "/proc/self/status", "window": 1, "offset": u64::MAX }), "invalid_argument", "bad_params"),
    ];
    for (params, code, reason) in cases {
        agent.assert_refuses("file.read", params, code, reason);
    }
}

#[test]
fn names_the_path_and_the_operation_in_an_error() {
    let (_home, mut agent) = start("read-message");
    let failure = agent.call("file.read", json!({ "path": "notes/missing", "window": 1 })).unwrap_err();
    assert_eq!(failure.message, "cannot read notes/missing: No such file or directory (os error 2)");
}
