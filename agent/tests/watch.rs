mod client;

use client::{Client, Event, start};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A watch and its lines that the test has not read.
struct Watch {
    call: u64,
    lines: VecDeque<Value>,
}

impl Watch {
    fn start(agent: &mut Client, params: Value) -> Self {
        let mut params = params;
        params["window"] = json!(1 << 20);
        let call = agent.begin("file.watch", params);
        let mut watch = Self { call, lines: VecDeque::new() };
        assert_eq!(watch.next(agent), json!({ "kind": "ready", "path": "" }));
        watch
    }

    fn next(&mut self, agent: &mut Client) -> Value {
        while self.lines.is_empty() {
            match agent.event(self.call) {
                Event::Data { bytes, .. } => {
                    assert!(bytes.ends_with(b"\n"));
                    agent.credit(self.call, bytes.len());
                    let text = String::from_utf8(bytes).unwrap();
                    self.lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
                }
                other => panic!("expected lines, got {other:?}"),
            }
        }
        self.lines.pop_front().unwrap()
    }

    /// The events before the creation of a marker file.
    fn up_to_mark(&mut self, agent: &mut Client, mark: &Path) -> Vec<String> {
        File::create(mark).unwrap();
        let name = mark.file_name().unwrap().to_str().unwrap();
        let mut seen = Vec::new();
        loop {
            let line = self.next(agent);
            if line == json!({ "kind": "create", "path": name }) {
                return seen;
            }
            seen.push(summary(&line));
        }
    }

    /// The events around the creation of a marker file: those below a new directory may come after it.
    fn around_mark(&mut self, agent: &mut Client, mark: &Path, count: usize) -> Vec<String> {
        let mut seen = self.up_to_mark(agent, mark);
        while seen.len() < count {
            seen.push(summary(&self.next(agent)));
        }
        seen
    }
}

fn summary(line: &Value) -> String {
    let text = |field: &str| line[field].as_str().unwrap();
    let to = line.get("to").map(|to| format!(" > {}", to.as_str().unwrap())).unwrap_or_default();
    format!("{} {}{to}", text("kind"), text("path"))
}

#[test]
fn reports_each_kind_of_change_as_one_event() {
    let (home, mut agent) = start("watch-kinds");
    fs::write(home.join("old"), "").unwrap();
    let mut watch = Watch::start(&mut agent, json!({ "path": "." }));
    File::create(home.join("new")).unwrap();
    fs::OpenOptions::new().append(true).open(home.join("new")).unwrap().write_all(b"text").unwrap();
    fs::set_permissions(home.join("new"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(home.join("new"), home.join("renamed")).unwrap();
    fs::remove_file(home.join("renamed")).unwrap();
    fs::create_dir(home.join("dir")).unwrap();
    fs::remove_dir(home.join("dir")).unwrap();
    fs::rename(home.join("old"), home.join("even older")).unwrap();
    let expected = [
        "create new",
        "write new",
        "chmod new",
        "rename new > renamed",
        "remove renamed",
        "create dir",
        "remove dir",
        "rename old > even older",
    ];
    assert_eq!(watch.up_to_mark(&mut agent, &home.join("mark")), expected);
}

#[test]
fn reports_only_direct_entries_without_recursive() {
    let (home, mut agent) = start("watch-plain");
    fs::create_dir(home.join("sub")).unwrap();
    let mut watch = Watch::start(&mut agent, json!({ "path": "." }));
    File::create(home.join("sub/file")).unwrap();
    assert_eq!(watch.up_to_mark(&mut agent, &home.join("mark")), Vec::<String>::new());
}

#[test]
fn reports_changes_in_existing_and_new_subdirectories() {
    let (home, mut agent) = start("watch-tree");
    fs::create_dir_all(home.join("a/b")).unwrap();
    let mut watch = Watch::start(&mut agent, json!({ "path": ".", "recursive": true }));
    File::create(home.join("a/b/file")).unwrap();
    assert_eq!(watch.next(&mut agent), json!({ "kind": "create", "path": "a/b/file" }));
    fs::create_dir(home.join("c")).unwrap();
    assert_eq!(watch.next(&mut agent), json!({ "kind": "create", "path": "c" }));
    // After the event for the directory, the caller can rely on its watch.
    File::create(home.join("c/file")).unwrap();
    assert_eq!(watch.next(&mut agent), json!({ "kind": "create", "path": "c/file" }));
    fs::remove_file(home.join("c/file")).unwrap();
    fs::remove_dir(home.join("c")).unwrap();
    assert_eq!(watch.up_to_mark(&mut agent, &home.join("mark")), ["remove c/file", "remove c"]);
}

#[test]
fn reports_entries_older_than_the_watch_of_a_new_directory_once() {
    let (home, mut agent) = start("watch-race");
    let mut watch = Watch::start(&mut agent, json!({ "path": ".", "recursive": true }));
    for round in 0..50 {
        let top = format!("top-{round:02}");
        fs::create_dir_all(home.join(&top).join("b/c")).unwrap();
        File::create(home.join(&top).join("b/c/file")).unwrap();
        File::create(home.join(&top).join("b/file")).unwrap();
        let mut seen = watch.around_mark(&mut agent, &home.join(format!("mark-{round}")), 5);
        seen.sort();
        let expected = ["", "/b", "/b/c", "/b/c/file", "/b/file"].map(|below| format!("create {top}{below}"));
        assert_eq!(seen, expected);
    }
}

#[test]
fn reports_a_renamed_directory_once_and_its_contents_under_the_new_path() {
    let (home, mut agent) = start("watch-rename");
    fs::create_dir_all(home.join("a/b")).unwrap();
    fs::create_dir(home.join("x")).unwrap();
    let mut watch = Watch::start(&mut agent, json!({ "path": ".", "recursive": true }));
    fs::rename(home.join("a"), home.join("x/y")).unwrap();
    assert_eq!(watch.next(&mut agent), json!({ "kind": "rename", "path": "a", "to": "x/y" }));
    File::create(home.join("x/y/b/file")).unwrap();
    assert_eq!(watch.up_to_mark(&mut agent, &home.join("mark")), ["create x/y/b/file"]);
}

#[test]
fn watches_a_directory_renamed_right_after_its_creation() {
    let (home, mut agent) = start("watch-mkdir-rename");
    let mut watch = Watch::start(&mut agent, json!({ "path": ".", "recursive": true }));
    for round in 0..50 {
        let (first, second) = (home.join("first"), home.join(format!("second-{round}")));
        fs::create_dir(&first).unwrap();
        fs::rename(&first, &second).unwrap();
        let mark = home.join(format!("mark-{round}"));
        let seen = watch.up_to_mark(&mut agent, &mark);
        assert_eq!(seen, ["create first".to_string(), format!("rename first > second-{round}")]);
        File::create(second.join("file")).unwrap();
        assert_eq!(watch.next(&mut agent), json!({ "kind": "create", "path": format!("second-{round}/file") }));
    }
}

#[test]
fn reports_moves_out_of_the_tree_as_removed_and_into_it_as_created() {
    let (home, mut agent) = start("watch-in-out");
    fs::create_dir_all(home.join("tree/a/b")).unwrap();
    fs::create_dir_all(home.join("outside/c")).unwrap();
    File::create(home.join("outside/c/file")).unwrap();
    let mut watch = Watch::start(&mut agent, json!({ "path": "tree", "recursive": true }));
    fs::rename(home.join("tree/a"), home.join("a")).unwrap();
    assert_eq!(watch.next(&mut agent), json!({ "kind": "remove", "path": "a" }));
    File::create(home.join("a/b/unseen")).unwrap();
    fs::rename(home.join("outside"), home.join("tree/inside")).unwrap();
    let expected = ["create inside", "create inside/c", "create inside/c/file"];
    assert_eq!(watch.up_to_mark(&mut agent, &home.join("tree/mark")), expected);
}

#[test]
fn reports_files_written_by_the_agent_without_their_temporary_names() {
    let (home, mut agent) = start("watch-own");
    let mut watch = Watch::start(&mut agent, json!({ "path": ".", "recursive": true }));
    agent.write_file(json!({ "path": "file" }), b"first").unwrap();
    agent.write_file(json!({ "path": "file" }), b"second").unwrap();
    agent.write_file(json!({ "path": "new/dir/file" }), b"third").unwrap();
    let seen = watch.around_mark(&mut agent, &home.join("mark"), 5);
    assert_eq!(seen, ["create file", "write file", "create new", "create new/dir", "create new/dir/file"]);
}

#[test]
fn watches_a_single_file_across_replacement_and_removal() {
    let (home, mut agent) = start("watch-file");
    fs::write(home.join("file"), "").unwrap();
    fs::write(home.join("other"), "").unwrap();
    let mut watch = Watch::start(&mut agent, json!({ "path": "file" }));
    let event = |kind: &str| json!({ "kind": kind, "path": "" });
    fs::write(home.join("other"), "unseen").unwrap();
    fs::write(home.join("file"), "1").unwrap();
    assert_eq!(watch.next(&mut agent), event("write"));
    fs::set_permissions(home.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    loop {
        match watch.next(&mut agent) {
            // Rewriting a file truncates it first, which may be a second write event.
            line if line == event("write") => {}
            line => {
                assert_eq!(line, event("chmod"));
                break;
            }
        }
    }
    agent.write_file(json!({ "path": "file" }), b"2").unwrap();
    assert_eq!(watch.next(&mut agent), event("write"));
    fs::rename(home.join("file"), home.join("gone")).unwrap();
    assert_eq!(watch.next(&mut agent), event("remove"));
    fs::rename(home.join("gone"), home.join("file")).unwrap();
    assert_eq!(watch.next(&mut agent), event("create"));
    fs::remove_file(home.join("file")).unwrap();
    assert_eq!(watch.next(&mut agent), event("remove"));
}

#[test]
fn ends_the_watch_when_the_watched_path_is_removed() {
    let (home, mut agent) = start("watch-end");
    for (name, recursive) in [("plain", false), ("tree", true)] {
        fs::create_dir(home.join(name)).unwrap();
        let mut watch = Watch::start(&mut agent, json!({ "path": name, "recursive": recursive }));
        fs::remove_dir(home.join(name)).unwrap();
        assert_eq!(watch.next(&mut agent), json!({ "kind": "remove", "path": "" }));
        assert_eq!(agent.event(watch.call), Event::Answer(Ok(json!({}))));
    }
}

#[test]
fn reports_one_overflow_to_a_caller_without_credit_and_then_later_events() {
    let (home, mut agent) = start("watch-overflow");
    fs::create_dir(home.join("dir")).unwrap();
    let call = agent.begin("file.watch", json!({ "path": "dir", "window": 4096 }));
    let Event::Data { bytes, .. } = agent.event(call) else { panic!("expected the ready event") };
    assert_eq!(bytes, b"{\"kind\":\"ready\",\"path\":\"\"}\n");
    // More events than the agent queues.
    for number in 0..10_000 {
        File::create(home.join("dir").join(number.to_string())).unwrap();
    }
    assert!(agent.peak_memory_kib() < 16 * 1024, "{} KiB", agent.peak_memory_kib());
    agent.credit(call, 64 << 20);
    let mut watch = Watch { call, lines: VecDeque::new() };
    while watch.next(&mut agent)["kind"] != "overflow" {}
    let afterwards = watch.up_to_mark(&mut agent, &home.join("dir/afterwards"));
    assert!(!afterwards.iter().any(|line| line.contains("overflow")), "{afterwards:?}");
}

#[test]
fn answers_other_calls_during_a_flood_of_events() {
    let (home, mut agent) = start("watch-flood");
    let watch = agent.begin("file.watch", json!({ "path": ".", "window": 4096 }));
    assert!(matches!(agent.event(watch), Event::Data { .. }));
    let is_over = Arc::new(AtomicBool::new(false));
    let flood = |number: usize| {
        let is_over = Arc::clone(&is_over);
        // Alternates, because the kernel merges consecutive writes to one file.
        let files = ["a", "b"].map(|name| File::create(home.join(format!("{name}{number}"))).unwrap());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                files.iter().for_each(|file| file.write_all_at(b"x", 0).unwrap());
            }
        })
    };
    let floods = [1, 2].map(flood);
    for _ in 0..50 {
        agent.call("ping", json!({})).unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().unwrap();
    }
}

#[test]
fn answers_a_canceled_watch_and_frees_its_descriptor() {
    let (_home, mut agent) = start("watch-cancel");
    let descriptors = |agent: &Client| fs::read_dir(format!("/proc/{}/fd", agent.stream.child.id())).unwrap().count();
    agent.call("ping", json!({})).unwrap();
    let before = descriptors(&agent);
    let watch = Watch::start(&mut agent, json!({ "path": ".", "recursive": true }));
    assert_eq!(descriptors(&agent), before + 1);
    agent.assert_cancels(watch.call);
    agent.call("ping", json!({})).unwrap();
    assert_eq!(descriptors(&agent), before);
}

#[test]
fn refuses_to_watch_a_missing_path() {
    let (_home, mut agent) = start("watch-missing");
    agent.assert_refuses("file.watch", json!({ "path": "missing", "window": 1000 }), "not_found", "no_such_file");
}
