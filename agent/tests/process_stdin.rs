//! Bytes into processes, by pipe and by terminal.

mod client;

use client::processes::eventually;
use client::{Answer, Client, TempDir};
use serde_json::json;

const MIB: usize = 1024 * 1024;

fn start(name: &str) -> (TempDir, Client) {
    let home = TempDir::new(name);
    let client = Client::start(home.path());
    (home, client)
}

fn assert_refused(answer: &Answer, code: &str, reason: &str) {
    let failure = answer.as_ref().expect_err("the input is refused");
    assert_eq!((failure.code.as_str(), failure.reason.as_str()), (code, reason), "{}", failure.message);
}

#[test]
fn input_reaches_the_process_and_closing_ends_it() {
    let (_home, mut client) = start("stdin-cat");
    client.start_process("p", json!({ "argv": ["cat"], "stdin": true }));
    assert_eq!(client.stdin("p", json!({}), b"one ").unwrap(), json!({ "offset": 4 }));
    assert_eq!(client.stdin("p", json!({ "close": true }), b"two\0\xff").unwrap(), json!({ "offset": 9 }));
    assert_eq!(client.read_output("p", 0).bytes(), b"one two\0\xff");
    assert_eq!(client.wait("p")["status"]["exit_code"], json!(0));
    assert_eq!(client.list()[0]["stdin_offset"], json!(9));
}

#[test]
fn repeated_input_is_taken_once() {
    let (_home, mut client) = start("stdin-repeat");
    client.start_process("p", json!({ "argv": ["cat"], "stdin": true }));
    for _ in 0..2 {
        assert_eq!(client.stdin("p", json!({ "offset": 0 }), b"abc").unwrap(), json!({ "offset": 3 }));
    }
    assert_eq!(client.stdin("p", json!({ "offset": 1 }), b"bcdef").unwrap(), json!({ "offset": 6 }));
    assert_refused(&client.stdin("p", json!({ "offset": 7 }), b"x"), "failed_precondition", "stdin_gap");
    for _ in 0..2 {
        let end = client.stdin("p", json!({ "offset": 6, "close": true }), b"");
        assert_eq!(end.unwrap(), json!({ "offset": 6 }));
    }
    assert_eq!(client.read_output("p", 0).bytes(), b"abcdef");
}

#[test]
fn calls_in_flight_are_written_in_the_order_they_came() {
    let (_home, mut client) = start("stdin-order");
    client.start_process("p", json!({ "argv": ["cat"], "stdin": true }));
    let output = client.begin_output("p", 0, 1 << 20);
    let whole: Vec<u8> = (0..4 * MIB).map(|at| (at / 3) as u8).collect();
    let mut calls = Vec::new();
    for (number, piece) in whole.chunks(256 * 1024).enumerate() {
        let params = json!({ "process": "p", "offset": number * 256 * 1024 });
        calls.push(client.begin_with("process.stdin", params, Some(piece)));
        if calls.len() == 4 {
            assert!(client.answer(calls.remove(0)).is_ok());
        }
    }
    for call in calls {
        assert!(client.answer(call).is_ok());
    }
    client.stdin("p", json!({ "close": true }), b"").unwrap();
    assert!(client.finish_output(output).bytes() == whole);
}

#[test]
fn input_that_nobody_takes_waits_within_bounds() {
    let (_home, mut client) = start("stdin-full");
    client.start_process("p", json!({ "command": "read line; cat >/dev/null", "stdin": true }));
    client.signal("p", "STOP", "tree").unwrap();
    let waiting = client.begin_with("process.stdin", json!({ "process": "p" }), Some(&vec![b'x'; MIB]));
    assert_refused(&client.stdin("p", json!({}), b"y"), "resource_exhausted", "stdin_full");
    assert!(client.call("ping", json!({})).is_ok());
    client.signal("p", "CONT", "tree").unwrap();
    assert_eq!(client.answer(waiting).unwrap(), json!({ "offset": MIB }));
    assert!(client.stdin("p", json!({ "close": true }), b"y\n").is_ok());
    assert_eq!(client.wait("p")["status"]["signal"], json!(null));
}

#[test]
fn a_canceled_call_no_longer_counts_and_the_offset_says_how_much_was_taken() {
    let (_home, mut client) = start("stdin-cancel");
    client.start_process("p", json!({ "argv": ["sleep", "1000"], "stdin": true }));
    let waiting = client.begin_with("process.stdin", json!({ "process": "p" }), Some(&vec![b'x'; MIB]));
    eventually("the pipe filling up", || client.list()[0]["stdin_offset"].as_u64().unwrap() > 0);
    client.cancel(waiting);
    assert_eq!(client.answer(waiting).unwrap_err().code, "canceled");
    let taken = client.list()[0]["stdin_offset"].as_u64().unwrap();
    assert!(taken < MIB as u64);
    assert_eq!(client.stdin("p", json!({ "offset": 0 }), b"xx").unwrap(), json!({ "offset": taken }));
}

#[test]
fn a_process_that_takes_no_input_says_so() {
    let (_home, mut client) = start("stdin-closed");
    client.start_process("none", json!({ "argv": ["cat"] }));
    assert_refused(&client.stdin("none", json!({}), b"x"), "failed_precondition", "no_stdin");
    assert_eq!(client.wait("none")["status"]["exit_code"], json!(0), "without input cat ends at once");

    client.start_process("shut", json!({ "command": "exec 0<&-; echo shut; sleep 1000", "stdin": true }));
    let call = client.begin_output("shut", 0, 100);
    client.read_until(call, "shut");
    assert_refused(&client.stdin("shut", json!({}), b"x"), "failed_precondition", "stdin_closed");

    client.start_process("gone", json!({ "argv": ["true"], "stdin": true }));
    client.wait("gone");
    assert_refused(&client.stdin("gone", json!({}), b"x"), "failed_precondition", "stdin_closed");
    assert_refused(&client.stdin("nobody", json!({}), b"x"), "not_found", "no_such_process");
}

#[test]
fn a_terminal_has_a_size_a_type_and_one_output() {
    let (_home, mut client) = start("stdin-pty");
    let script = "tty >/dev/null && stty size; echo $TERM; echo err >&2; stty size <&1";
    let (output, done) = client.run("p", json!({ "command": script, "pty": { "rows": 11, "cols": 222 } }));
    assert_eq!(output.of("pty"), "11 222\r\nxterm-256color\r\nerr\r\n11 222\r\n");
    assert_eq!(done["status"]["exit_code"], json!(0));
    assert_eq!(client.list()[0]["pty"], json!(true));
}

#[test]
fn a_resized_terminal_tells_its_process() {
    let (_home, mut client) = start("stdin-resize");
    let script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done";
    client.start_process("p", json!({ "command": script, "pty": { "rows": 1, "cols": 1 } }));
    let call = client.begin_output("p", 0, 1000);
    client.read_until(call, "ready");
    client.call("process.resize", json!({ "process": "p", "rows": 40, "cols": 100 })).unwrap();
    client.read_until(call, "40 100");
    client.wait("p");
    let refused = client.call("process.resize", json!({ "process": "p", "rows": 1, "cols": 1 }));
    assert_refused(&refused, "failed_precondition", "not_running");
    client.start_process("pipe", json!({ "argv": ["sleep", "1000"] }));
    let refused = client.call("process.resize", json!({ "process": "pipe", "rows": 1, "cols": 1 }));
    assert_refused(&refused, "failed_precondition", "no_terminal");
    let refused = client.call("process.resize", json!({ "process": "pipe", "rows": 0, "cols": 1 }));
    assert_eq!(refused.unwrap_err().code, "invalid_argument");
}

#[test]
fn input_to_a_terminal_is_typed_and_closing_types_the_end() {
    let (_home, mut client) = start("stdin-typed");
    client.start_process(
        "p",
        json!({ "command": "stty -echo; echo ready; cat; echo bye", "pty": { "rows": 24, "cols": 80 } }),
    );
    let call = client.begin_output("p", 0, 1000);
    client.read_until(call, "ready");
    assert_eq!(client.stdin("p", json!({ "offset": 0 }), b"hello\n").unwrap(), json!({ "offset": 6 }));
    client.read_until(call, "hello");
    client.stdin("p", json!({ "close": true }), b"").unwrap();
    client.read_until(call, "bye");
    assert_eq!(client.answer(call).unwrap()["offset"], client.wait("p")["end_offset"]);
    assert_refused(&client.stdin("p", json!({}), b"x"), "failed_precondition", "stdin_closed");
}

#[test]
fn control_c_on_a_terminal_interrupts_the_foreground() {
    let (_home, mut client) = start("stdin-interrupt");
    client.start_process("p", json!({ "command": "echo ready; exec sleep 1000", "pty": { "rows": 24, "cols": 80 } }));
    let call = client.begin_output("p", 0, 1000);
    client.read_until(call, "ready");
    client.stdin("p", json!({}), b"\x03").unwrap();
    assert_eq!(client.wait("p")["status"]["signal"], json!("SIGINT"));
}
