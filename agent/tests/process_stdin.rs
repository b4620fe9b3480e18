//! Input of processes, by pipe and by terminal.

mod client;

use client::{assert_refused, eventually, start};
use serde_json::json;

const MIB: usize = 1024 * 1024;

#[test]
fn delivers_input_and_ends_it_on_close() {
    let (_home, mut client) = start("stdin-cat");
    client.start_process("p", json!({ "argv": ["cat"], "stdin": true }));
    assert_eq!(client.stdin("p", json!({}), b"one ").unwrap(), json!({ "offset": 4 }));
    assert_eq!(client.stdin("p", json!({ "close": true }), b"two\0\xff").unwrap(), json!({ "offset": 9 }));
    assert_eq!(client.read_output("p", 0).bytes(), b"one two\0\xff");
    assert_eq!(client.wait("p")["status"]["exit_code"], json!(0));
    assert_eq!(client.list()[0]["stdin_offset"], json!(9));
}

#[test]
fn takes_repeated_input_once() {
    let (_home, mut client) = start("stdin-repeat");
    client.start_process("p", json!({ "argv": ["cat"], "stdin": true }));
    for _ in 0..2 {
        assert_eq!(client.stdin("p", json!({ "offset": 0 }), b"abc").unwrap(), json!({ "offset": 3 }));
    }
    assert_eq!(client.stdin("p", json!({ "offset": 1 }), b"bcdef").unwrap(), json!({ "offset": 6 }));
    assert_refused(client.stdin("p", json!({ "offset": 7 }), b"x"), "failed_precondition", "stdin_gap");
    for _ in 0..2 {
        let end = client.stdin("p", json!({ "offset": 6, "close": true }), b"");
        assert_eq!(end.unwrap(), json!({ "offset": 6 }));
    }
    assert_eq!(client.read_output("p", 0).bytes(), b"abcdef");
}

#[test]
fn writes_the_input_of_concurrent_calls_in_order() {
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
fn bounds_the_input_that_a_process_does_not_read() {
    let (_home, mut client) = start("stdin-full");
    client.start_process("p", json!({ "command": "read line; cat >/dev/null", "stdin": true }));
    client.signal("p", "STOP", "tree").unwrap();
    let waiting = client.begin_with("process.stdin", json!({ "process": "p" }), Some(&vec![b'x'; MIB]));
    assert_refused(client.stdin("p", json!({}), b"y"), "resource_exhausted", "stdin_full");
    assert!(client.call("ping", json!({})).is_ok());
    client.signal("p", "CONT", "tree").unwrap();
    assert_eq!(client.answer(waiting).unwrap(), json!({ "offset": MIB }));
    assert!(client.stdin("p", json!({ "close": true }), b"y\n").is_ok());
    assert_eq!(client.wait("p")["status"]["signal"], json!(null));
}

#[test]
fn reports_the_bytes_taken_before_a_cancel_and_drops_the_others() {
    let (_home, mut client) = start("stdin-cancel");
    client.start_process("p", json!({ "argv": ["sleep", "1000"], "stdin": true }));
    let waiting = client.begin_with("process.stdin", json!({ "process": "p" }), Some(&vec![b'x'; MIB]));
    eventually("the pipe to fill up", || client.list()[0]["stdin_offset"].as_u64().unwrap() > 0);
    client.assert_cancels(waiting);
    let taken = client.list()[0]["stdin_offset"].as_u64().unwrap();
    assert!(taken < MIB as u64);
    assert_eq!(client.stdin("p", json!({ "offset": 0 }), b"xx").unwrap(), json!({ "offset": taken }));
}

#[test]
fn refuses_input_for_a_process_without_stdin() {
    let (_home, mut client) = start("stdin-closed");
    client.start_process("none", json!({ "argv": ["cat"] }));
    assert_refused(client.stdin("none", json!({}), b"x"), "failed_precondition", "no_stdin");
    assert_eq!(client.wait("none")["status"]["exit_code"], json!(0), "without input cat exits at once");

    client.start_until("shut", json!({ "command": "exec 0<&-; echo shut; sleep 1000", "stdin": true }), "shut");
    assert_refused(client.stdin("shut", json!({}), b"x"), "failed_precondition", "stdin_closed");

    client.start_process("gone", json!({ "argv": ["true"], "stdin": true }));
    client.wait("gone");
    assert_refused(client.stdin("gone", json!({}), b"x"), "failed_precondition", "stdin_closed");
    assert_refused(client.stdin("nobody", json!({}), b"x"), "not_found", "no_such_process");
}

#[test]
fn gives_a_terminal_its_size_type_and_a_single_output() {
    let (_home, mut client) = start("stdin-pty");
    let script = "tty >/dev/null && stty size; echo $TERM; echo err >&2; stty size <&1";
    let (output, done) = client.run("p", json!({ "command": script, "pty": { "rows": 11, "cols": 222 } }));
    assert_eq!(output.of("pty"), "11 222\r\nxterm-256color\r\nerr\r\n11 222\r\n");
    assert_eq!(done["status"]["exit_code"], json!(0));
    assert_eq!(client.list()[0]["pty"], json!(true));
}

#[test]
fn signals_the_process_when_its_terminal_is_resized() {
    let (_home, mut client) = start("stdin-resize");
    let script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done";
    let call = client.start_until("p", json!({ "command": script, "pty": { "rows": 1, "cols": 1 } }), "ready");
    client.call("process.resize", json!({ "process": "p", "rows": 40, "cols": 100 })).unwrap();
    client.read_until(call, "40 100");
    client.wait("p");
    let resized = json!({ "process": "p", "rows": 1, "cols": 1 });
    client.assert_refuses("process.resize", resized, "failed_precondition", "not_running");
    client.start_process("pipe", json!({ "argv": ["sleep", "1000"] }));
    let resized = json!({ "process": "pipe", "rows": 1, "cols": 1 });
    client.assert_refuses("process.resize", resized, "failed_precondition", "no_terminal");
    let refused = client.call("process.resize", json!({ "process": "pipe", "rows": 0, "cols": 1 }));
    assert_eq!(refused.unwrap_err().code, "invalid_argument");
}

#[test]
fn sends_the_end_of_input_character_when_a_terminal_is_closed() {
    let (_home, mut client) = start("stdin-typed");
    let script = "stty -echo; echo ready; cat; echo bye";
    let call = client.start_until("p", json!({ "command": script, "pty": { "rows": 24, "cols": 80 } }), "ready");
    assert_eq!(client.stdin("p", json!({ "offset": 0 }), b"hello\n").unwrap(), json!({ "offset": 6 }));
    client.read_until(call, "hello");
    client.stdin("p", json!({ "close": true }), b"").unwrap();
    client.read_until(call, "bye");
    assert_eq!(client.answer(call).unwrap()["offset"], client.wait("p")["end_offset"]);
    assert_refused(client.stdin("p", json!({}), b"x"), "failed_precondition", "stdin_closed");
}

#[test]
fn interrupts_the_foreground_process_with_control_c() {
    let (_home, mut client) = start("stdin-interrupt");
    let script = "echo ready; exec sleep 1000";
    client.start_until("p", json!({ "command": script, "pty": { "rows": 24, "cols": 80 } }), "ready");
    client.stdin("p", json!({}), b"\x03").unwrap();
    assert_eq!(client.wait("p")["status"]["signal"], json!("SIGINT"));
}
