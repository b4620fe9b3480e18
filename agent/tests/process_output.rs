//! Journals: what readers get from which offset, and when the process waits for them.

mod client;

use client::agent::{PROGRAM, TempDir, make_fifo, mode};
use client::{Client, eventually, start};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::process::Command;

/// The output of `seq 1 last`.
fn numbers(last: u32) -> Vec<u8> {
    (1..=last).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

fn end_offset(client: &mut Client, id: &str) -> u64 {
    let list = client.list();
    let info = list.iter().find(|info| info["process"] == json!(id)).expect("the process is listed");
    info["end_offset"].as_u64().unwrap()
}

#[test]
fn reads_output_from_any_offset_repeatedly() {
    let (_home, mut client) = start("output-offsets");
    let (output, _) = client.run("p", json!({ "command": "printf abc; printf defg >&2" }));
    output.assert_contiguous(0);
    assert_eq!((output.of("stdout").as_str(), output.of("stderr").as_str(), output.end), ("abc", "defg", 7));
    for (offset, expected) in [(0, "abcdefg"), (2, "cdefg"), (5, "fg"), (7, "")] {
        let again = client.read_output("p", offset);
        assert_eq!((again.bytes(), again.end), (expected.as_bytes().to_vec(), 7));
    }
    client.assert_refuses(
        "process.output",
        json!({ "process": "p", "offset": 8, "window": 1 }),
        "invalid_argument",
        "offset_beyond_end",
    );
    client.assert_refuses("process.output", json!({ "process": "q", "window": 1 }), "not_found", "no_such_process");
}

#[test]
fn sends_no_output_beyond_the_credit() {
    let (_home, mut client) = start("output-credit");
    client.start_process("p", json!({ "command": "printf 0123456789" }));
    client.wait("p");
    let call = client.begin_output("p", 0, 4);
    assert_eq!(client.read_exactly(call, 4), b"0123");
    client.assert_silent(call);
    client.credit(call, 5);
    client.read_until(call, "45678");
    client.credit(call, 100);
    assert_eq!(client.answer(call).unwrap(), json!({ "offset": 10 }));
}

#[test]
fn drops_and_counts_the_oldest_bytes_without_a_reader() {
    let (_home, mut client) = start("output-dropped");
    let whole = numbers(100_000);
    for (id, kept) in [("small", 4096), ("memory", 200_000), ("file", 400_000)] {
        client.start_process(id, json!({ "argv": ["seq", "1", "100000"], "journal_bytes": kept }));
        assert_eq!(client.wait(id)["end_offset"], json!(whole.len()));
        let output = client.read_output(id, 10);
        assert_eq!(output.dropped() as usize, whole.len() - kept - 10);
        assert!(output.bytes() == whole[whole.len() - kept..], "{id}");
        output.assert_contiguous(10);
        let list = client.list();
        let info = list.iter().find(|info| info["process"] == json!(id)).unwrap();
        assert_eq!(info["start_offset"], json!(whole.len() - kept));
    }
}

#[test]
fn blocks_the_process_and_loses_nothing_while_a_reader_is_attached() {
    let (_home, mut client) = start("output-pressure");
    let go = json!({ "command": "read go; seq 1 100000", "stdin": true, "journal_bytes": 8192 });
    client.start_process("p", go);
    let call = client.begin_output("p", 0, 1);
    client.stdin("p", json!({}), b"\n").unwrap();
    client.read_until(call, "1");
    // The reader has no credit left, so the journal fills up and the process must wait.
    eventually("the journal to fill up", || end_offset(&mut client, "p") > 8000);
    assert!(end_offset(&mut client, "p") <= 8192 + 2);
    client.credit(call, 1 << 20);
    let output = client.finish_output(call);
    assert_eq!(output.dropped(), 0);
    assert!(output.bytes() == numbers(100_000)[1..]);
}

#[test]
fn reports_lost_bytes_to_a_reader_slower_than_the_fastest() {
    let (_home, mut client) = start("output-slow");
    let go = json!({ "command": "read go; seq 1 100000", "stdin": true, "journal_bytes": 8192 });
    client.start_process("p", go);
    let slow = client.begin_output("p", 0, 1);
    let fast = client.begin_output("p", 0, 1 << 20);
    client.stdin("p", json!({}), b"\n").unwrap();
    let whole = numbers(100_000);
    assert!(client.finish_output(fast).bytes() == whole);
    client.read_until(slow, "1");
    client.credit(slow, 1 << 20);
    let rest = client.finish_output(slow);
    assert_eq!(rest.dropped() as usize + rest.bytes().len() + 1, whole.len());
    assert!(rest.dropped() > 0 && whole.ends_with(&rest.bytes()));
}

#[test]
fn stops_blocking_the_process_when_its_reader_is_canceled() {
    let (_home, mut client) = start("output-cancel");
    client.start_process("p", json!({ "argv": ["seq", "1", "100000"], "journal_bytes": 4096 }));
    let call = client.begin_output("p", 0, 1);
    eventually("the journal to fill up", || end_offset(&mut client, "p") > 4000);
    client.assert_cancels(call);
    assert_eq!(client.wait("p")["end_offset"], json!(numbers(100_000).len()));
}

#[test]
fn ends_output_with_the_process_although_children_hold_the_pipe() {
    let (home, mut client) = start("output-children");
    make_fifo(&home.join("fifo"));
    let (output, done) = client.run("p", json!({ "command": "echo now; cat fifo &" }));
    assert_eq!((output.of("stdout").as_str(), &done["end_offset"]), ("now\n", &json!(4)));
    File::options().write(true).open(home.join("fifo")).unwrap().write_all(b"late\n").unwrap();
    eventually("the late output", || end_offset(&mut client, "p") == 9);
    assert_eq!(client.read_output("p", 0).of("stdout"), "now\nlate\n");
    assert_eq!(client.wait("p")["end_offset"], json!(4));
}

#[test]
fn keeps_the_children_of_a_forgotten_process_running() {
    let (home, mut client) = start("output-forgotten");
    make_fifo(&home.join("fifo"));
    let script = "(cat fifo; seq 1 50000; echo alive > survived) &";
    client.run("p", json!({ "command": script }));
    client.call("process.forget", json!({ "process": "p" })).unwrap();
    assert_eq!(client.list(), Vec::<Value>::new());
    File::options().write(true).open(home.join("fifo")).unwrap().write_all(b"late\n").unwrap();
    eventually("the child's last line", || home.join("survived").exists());
}

#[test]
fn lets_an_attached_reader_finish_after_forget() {
    let (_home, mut client) = start("output-forget-read");
    client.start_process("p", json!({ "command": "printf 0123456789" }));
    client.wait("p");
    let call = client.begin_output("p", 0, 4);
    client.read_until(call, "0123");
    client.call("process.forget", json!({ "process": "p" })).unwrap();
    client.credit(call, 100);
    client.read_until(call, "456789");
    assert_eq!(client.answer(call).unwrap(), json!({ "offset": 10 }));
}

#[test]
fn delivers_long_output_unchanged_with_constant_memory() {
    let (_home, mut client) = start("output-long");
    client.start_process("p", json!({ "argv": ["seq", "1", "20000000"] }));
    let call = client.begin_output("p", 0, 1 << 20);
    let mut expected = (1..=20_000_000u32).flat_map(|number| format!("{number}\n").into_bytes());
    let mut size = 0u64;
    let answer = client.for_each_piece(call, |_, bytes| {
        size += bytes.len() as u64;
        assert!(bytes.iter().all(|byte| Some(*byte) == expected.next()), "wrong bytes before {size}");
    });
    assert_eq!(answer, Ok(json!({ "offset": size })));
    assert_eq!(expected.next(), None);
    assert!(client.peak_memory_kib() < 12 * 1024, "{} KiB", client.peak_memory_kib());
}

#[test]
fn loses_only_history_on_a_full_disk() {
    let home = TempDir::new("output-full");
    let mut command = Command::new("sh");
    // Limits files to 256 KiB, like a full disk. SIGXFSZ must not end the agent.
    let script = "ulimit -f 512; exec \"$0\" --exit-on-eof --journal-dir \"$1\"";
    command.args(["-c", script, PROGRAM]).arg(home.join("journals"));
    let mut client = Client::spawn(command.env("HOME", &*home));
    let whole = numbers(500_000);
    client.start_process("unread", json!({ "argv": ["seq", "1", "500000"] }));
    assert_eq!(client.wait("unread")["end_offset"], json!(whole.len()));
    let output = client.read_output("unread", 0);
    let kept = output.bytes();
    assert!(kept.len() > 250_000 && kept.len() < 700_000, "{}", kept.len());
    assert!(output.dropped() as usize + kept.len() == whole.len() && whole.ends_with(&kept));

    let go = json!({ "command": "read go; seq 1 500000", "stdin": true });
    client.start_process("read", go);
    let call = client.begin_output("read", 0, 1);
    client.stdin("read", json!({}), b"\n").unwrap();
    client.read_until(call, "1");
    eventually("the process to wait", || end_offset(&mut client, "read") > 400_000);
    client.credit(call, 1 << 20);
    let rest = client.finish_output(call);
    assert!(rest.dropped() == 0 && rest.bytes() == whole[1..]);
}

#[test]
fn leaves_no_journal_files_behind() {
    let (home, mut client) = start("output-files");
    client.start_process("p", json!({ "argv": ["seq", "1", "1000000"] }));
    client.wait("p");
    let journals = home.join("journals");
    assert_eq!(std::fs::read_dir(&journals).unwrap().count(), 0);
    assert_eq!(mode(&journals), 0o700);
}
