//! Connections out of a sandbox, in a network namespace whose connections are redirected to the agent.

mod client;

use client::Event;
use client::network::{Redirected, end_of, redirected};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

macro_rules! redirected_or_skip {
    ($name:literal) => {
        match redirected($name) {
            Some(sandbox) => sandbox,
            None => return,
        }
    };
}

/// A connection that waits for a decision, and its line.
fn flow(sandbox: &mut Redirected, serving: u64, address: &str) -> (TcpStream, Value) {
    let stream = sandbox.connect(address);
    (stream, sandbox.line(serving))
}

#[test]
fn announces_a_connection_with_its_address_and_carries_its_bytes() {
    let mut sandbox = redirected_or_skip!("net-flow");
    let serving = sandbox.serve();
    let (mut stream, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    let address = json!({ "name": line["name"], "address": line["address"], "port": line["port"] });
    assert_eq!(address, json!({ "name": null, "address": "192.0.2.7", "port": 443 }));
    let call = sandbox.accept(&line);
    stream.write_all(b"to the world").unwrap();
    assert_eq!(sandbox.agent.read_exactly(call, 12), b"to the world");
    sandbox.agent.data(call, b"from the world");
    let mut bytes = [0; 14];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"from the world");
    sandbox.agent.end(call);
    assert_eq!(end_of(&stream), None);
    drop(stream);
    assert_eq!(sandbox.agent.answer(call), Ok(json!({ "sent": 14, "received": 12 })));
}

#[test]
fn carries_a_server_that_speaks_first_and_the_answer_after_a_half_close() {
    let mut sandbox = redirected_or_skip!("net-half");
    let serving = sandbox.serve();
    let (mut stream, line) = flow(&mut sandbox, serving, "192.0.2.7:22");
    // The program may end its direction before the caller accepts.
    stream.write_all(b"early").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let call = sandbox.accept(&line);
    sandbox.agent.data(call, b"welcome");
    assert_eq!(sandbox.agent.read_exactly(call, 5), b"early");
    sandbox.agent.data(call, b" goodbye");
    sandbox.agent.end(call);
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text, "welcome goodbye");
    assert_eq!(sandbox.agent.answer(call), Ok(json!({ "sent": 15, "received": 5 })));
}

#[test]
fn resets_a_connection_that_no_caller_serves() {
    let mut sandbox = redirected_or_skip!("net-unserved");
    sandbox.agent.call("ping", json!({})).unwrap();
    assert_eq!(end_of(&sandbox.connect("192.0.2.7:443")), Some(ErrorKind::ConnectionReset));
}

#[test]
fn resets_a_refused_flow_and_an_accepted_one_whose_call_is_canceled() {
    let mut sandbox = redirected_or_skip!("net-refuse");
    let serving = sandbox.serve();
    let (stream, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    assert_eq!(sandbox.agent.call("net.refuse", json!({ "flow": line["flow"] })), Ok(json!({})));
    assert_eq!(end_of(&stream), Some(ErrorKind::ConnectionReset));
    sandbox.agent.assert_refuses(
        "net.accept",
        json!({ "flow": line["flow"], "window": 1 }),
        "not_found",
        "no_such_flow",
    );
    let (stream, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    let call = sandbox.accept(&line);
    sandbox.agent.assert_cancels(call);
    assert_eq!(end_of(&stream), Some(ErrorKind::ConnectionReset));
}

#[test]
fn resets_connections_to_the_agent_itself() {
    let mut sandbox = redirected_or_skip!("net-direct");
    let serving = sandbox.serve();
    assert_eq!(end_of(&sandbox.connect("127.0.0.1:15001")), Some(ErrorKind::ConnectionReset));
    sandbox.agent.assert_silent(serving);
    let refused = sandbox.inside(|| TcpStream::connect("10.0.2.2:15001")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

fn reset(stream: TcpStream) {
    sandpiper_agent::net::socket::reset_on_close(stream.as_raw_fd(), true).unwrap();
}

#[test]
fn tells_that_a_waiting_flow_is_gone() {
    let mut sandbox = redirected_or_skip!("net-gone");
    let serving = sandbox.serve();
    let (stream, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    reset(stream);
    assert_eq!(sandbox.line(serving), json!({ "kind": "gone", "flow": line["flow"] }));
    let accept = json!({ "flow": line["flow"], "window": 1 });
    sandbox.agent.assert_refuses("net.accept", accept, "not_found", "no_such_flow");
}

#[test]
fn keeps_nothing_of_connections_that_come_and_go_while_the_caller_does_not_read() {
    let mut sandbox = redirected_or_skip!("net-unread");
    // Room for one or two lines.
    let serving = sandbox.serve_with(200);
    for _ in 0..500 {
        reset(sandbox.connect("192.0.2.7:443"));
    }
    let last = sandbox.connect("192.0.2.9:443");
    sandbox.agent.credit(serving, 1 << 20);
    let mut lines: Vec<Value> = Vec::new();
    while lines.last().is_none_or(|line| line["address"] != json!("192.0.2.9")) {
        lines.extend(sandbox.lines(serving));
    }
    assert!(lines.len() < 100, "{} lines", lines.len());
    drop(last);
}

#[test]
fn a_newer_caller_takes_over_and_what_waited_for_the_earlier_one_is_reset() {
    let mut sandbox = redirected_or_skip!("net-newer");
    let serving = sandbox.serve();
    let (accepted, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    let call = sandbox.accept(&line);
    let (waiting, _) = flow(&mut sandbox, serving, "192.0.2.7:444");
    let newer = sandbox.serve();
    assert_eq!(sandbox.agent.answer(serving), Ok(json!({})));
    assert_eq!(end_of(&waiting), Some(ErrorKind::ConnectionReset));
    flow(&mut sandbox, newer, "192.0.2.7:445");
    // What was accepted continues.
    (&accepted).write_all(b"still").unwrap();
    assert_eq!(sandbox.agent.read_exactly(call, 5), b"still");
}

#[test]
fn hello_resets_open_flows_and_the_next_caller_serves_new_ones() {
    let mut sandbox = redirected_or_skip!("net-hello");
    let serving = sandbox.serve();
    let (accepted, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    sandbox.accept(&line);
    let (waiting, _) = flow(&mut sandbox, serving, "192.0.2.7:444");
    sandbox.agent.call("system.quiesce", json!({})).unwrap();
    sandbox.agent.call("hello", json!({ "generation": 2 })).unwrap();
    assert_eq!(end_of(&accepted), Some(ErrorKind::ConnectionReset));
    assert_eq!(end_of(&waiting), Some(ErrorKind::ConnectionReset));
    let serving = sandbox.serve();
    let (mut stream, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    let call = sandbox.accept(&line);
    stream.write_all(b"again").unwrap();
    assert_eq!(sandbox.agent.read_exactly(call, 5), b"again");
}

#[test]
fn flows_and_their_bytes_wait_while_the_agent_is_quiesced() {
    let mut sandbox = redirected_or_skip!("net-quiesce");
    let serving = sandbox.serve();
    let (mut stream, line) = flow(&mut sandbox, serving, "192.0.2.7:443");
    let call = sandbox.accept(&line);
    sandbox.agent.call("system.quiesce", json!({})).unwrap();
    stream.write_all(b"during the checkpoint").unwrap();
    let later = sandbox.connect("192.0.2.7:444");
    sandbox.agent.assert_silent(call);
    sandbox.agent.call("system.thaw", json!({})).unwrap();
    assert_eq!(sandbox.agent.read_exactly(call, 21), b"during the checkpoint");
    assert_eq!(sandbox.line(serving)["port"], json!(444));
    drop(later);
}

#[test]
fn resets_connections_beyond_those_that_may_wait() {
    let mut sandbox = redirected_or_skip!("net-many");
    let serving = sandbox.serve();
    let waiting: Vec<_> = (0..256).map(|_| sandbox.connect("192.0.2.7:443")).collect();
    assert_eq!(end_of(&sandbox.connect("192.0.2.7:443")), Some(ErrorKind::ConnectionReset));
    // The refusal of one makes room for the next.
    let line = &sandbox.lines(serving)[0];
    sandbox.agent.call("net.refuse", json!({ "flow": line["flow"] })).unwrap();
    let next = sandbox.connect("192.0.2.7:443");
    next.set_nonblocking(true).unwrap();
    sandbox.agent.call("ping", json!({})).unwrap();
    assert_eq!(end_of(&next), Some(ErrorKind::WouldBlock));
    drop(waiting);
}

#[test]
fn serves_a_thousand_connections_in_a_row() {
    let mut sandbox = redirected_or_skip!("net-row");
    let serving = sandbox.serve_with(64 << 20);
    for _ in 0..1000 {
        let (mut stream, line) = flow(&mut sandbox, serving, "192.0.2.7:80");
        let call = sandbox.accept(&line);
        stream.write_all(b"x").unwrap();
        sandbox.agent.read_exactly(call, 1);
        sandbox.agent.end(call);
        assert_eq!(end_of(&stream), None);
        drop(stream);
        assert!(sandbox.agent.answer(call).is_ok());
    }
}

#[test]
fn carries_8_mib_each_way_under_credit() {
    let mut sandbox = redirected_or_skip!("net-bulk");
    let serving = sandbox.serve();
    let (stream, line) = flow(&mut sandbox, serving, "192.0.2.7:80");
    let call = sandbox.accept(&line);
    let size = 8 << 20;
    let mut writer = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        writer.write_all(&vec![b'u'; size]).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let receiving = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        (&stream).read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    // The first grant has been read.
    let (mut received, mut left, mut credit, mut has_ended) = (0, size, 256 * 1024, false);
    let down = vec![b'd'; 64 * 1024];
    while left > 0 || !has_ended {
        while credit > 0 && left > 0 {
            let piece = credit.min(left).min(down.len());
            sandbox.agent.data(call, &down[..piece]);
            (credit, left) = (credit - piece, left - piece);
        }
        match sandbox.agent.event(call) {
            Event::Data { bytes, .. } => {
                received += bytes.len();
                sandbox.agent.credit(call, bytes.len());
            }
            Event::Credit(bytes) => credit += bytes as usize,
            Event::End => has_ended = true,
            Event::Answer(answer) => panic!("ended too early: {answer:?}"),
        }
    }
    sandbox.agent.end(call);
    sending.join().unwrap();
    assert_eq!((received, receiving.join().unwrap()), (size, size));
    assert_eq!(sandbox.agent.answer(call), Ok(json!({ "sent": size, "received": size })));
}
