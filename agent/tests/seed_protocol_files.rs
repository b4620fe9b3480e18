//! The seed protocol: `read_file`, `write_file` and `list_dir`.

mod client;

use client::start;
use serde_json::json;
use std::fs;

#[test]
fn reads_back_the_text_it_has_written() {
    let (home, mut agent) = start("seed-text");
    let text = "żółć \u{1f980}\n\t\"quoted\"\u{0}";
    let answer = agent.call("write_file", json!({ "path": "new/text", "content": text }));
    assert_eq!(answer, Ok(json!({ "success": true })));
    assert_eq!(fs::read(home.join("new/text")).unwrap(), text.as_bytes());
    assert_eq!(agent.call("read_file", json!({ "path": "new/text" })), Ok(json!({ "content": text })));
}

#[test]
fn lists_a_directory_in_sorted_order() {
    let (home, mut agent) = start("seed-list");
    fs::create_dir_all(home.join("dir/sub")).unwrap();
    fs::write(home.join("dir/b"), "12345").unwrap();
    fs::write(home.join("dir/a"), "").unwrap();
    let entries = agent.call("list_dir", json!({ "path": "dir" })).unwrap()["entries"].clone();
    assert_eq!(entries[0], json!({ "name": "a", "is_dir": false, "size": 0 }));
    assert_eq!(entries[1], json!({ "name": "b", "is_dir": false, "size": 5 }));
    assert_eq!((&entries[2]["name"], &entries[2]["is_dir"]), (&json!("sub"), &json!(true)));
    assert_eq!(entries.as_array().unwrap().len(), 3);
}

#[test]
fn reads_up_to_512_kib_of_text_and_refuses_more() {
    let (home, mut agent) = start("seed-large");
    let half = 512 * 1024;
    fs::write(home.join("fits"), "x".repeat(half)).unwrap();
    fs::write(home.join("too-large"), "x".repeat(half + 1)).unwrap();
    fs::write(home.join("escapes"), "\u{1}".repeat(half)).unwrap();
    let answer = agent.call("read_file", json!({ "path": "fits" })).unwrap();
    assert_eq!(answer["content"].as_str().unwrap().len(), half);
    for path in ["too-large", "escapes"] {
        agent.assert_refuses("read_file", json!({ "path": path }), "failed_precondition", "too_large");
    }
}

#[test]
fn refuses_to_read_a_file_that_is_not_utf_8() {
    let (home, mut agent) = start("seed-binary");
    fs::write(home.join("binary"), b"\xff\xfe").unwrap();
    agent.assert_refuses("read_file", json!({ "path": "binary" }), "failed_precondition", "not_text");
}

#[test]
fn refuses_to_list_a_directory_too_large_for_one_answer() {
    let (home, mut agent) = start("seed-many");
    for number in 0..5_000 {
        fs::File::create(home.join(format!("{number:0200}"))).unwrap();
    }
    agent.assert_refuses("list_dir", json!({ "path": "." }), "failed_precondition", "too_large");
}
