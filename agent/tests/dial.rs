mod client;

use client::{Client, Event, assert_refused, start};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread::{JoinHandle, spawn};

/// Opens a stream to an address and waits until it is open.
fn dial(agent: &mut Client, mut params: Value, window: usize) -> u64 {
    params["window"] = json!(window);
    let call = agent.begin("port.dial", params);
    assert!(matches!(agent.event(call), Event::Credit(1..)));
    call
}

/// Reads up to the peer's end and grants what it reads.
fn read_to_end(agent: &mut Client, call: u64) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match agent.event(call) {
            Event::Data { bytes, .. } => {
                agent.credit(call, bytes.len());
                all.extend_from_slice(&bytes);
            }
            Event::Credit(_) => {}
            Event::End => return all,
            Event::Answer(answer) => panic!("expected the end before the answer {answer:?}"),
        }
    }
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Runs a program that listens on a port and gets one connection.
fn serve<T: Send + 'static>(program: impl FnOnce(TcpStream) -> T + Send + 'static) -> (u16, JoinHandle<T>) {
    let (listener, port) = listen();
    (port, spawn(move || program(listener.accept().unwrap().0)))
}

/// Dials a program that reads to the end and then answers in capitals. That works only if each direction can end alone.
fn expect_capitals<S>(agent: &mut Client, params: Value, accept: impl FnOnce() -> S + Send + 'static)
where
    S: Read + Write,
{
    let server = spawn(move || {
        let mut stream = accept();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        stream.write_all(&text.to_ascii_uppercase()).unwrap();
    });
    let call = dial(agent, params, 1 << 20);
    agent.data(call, b"hello ");
    agent.data(call, b"there");
    agent.end(call);
    assert_eq!(read_to_end(agent, call), b"HELLO THERE");
    assert_eq!(agent.event(call), Event::Answer(Ok(json!({ "sent": 11, "received": 11 }))));
    server.join().unwrap();
}

#[test]
fn carries_the_answer_of_a_tcp_port_after_the_caller_ends_its_direction() {
    let (_home, mut agent) = start("dial-tcp");
    let (listener, port) = listen();
    expect_capitals(&mut agent, json!({ "port": port }), move || listener.accept().unwrap().0);
}

#[test]
fn reaches_a_program_that_listens_only_on_ipv6() {
    let (_home, mut agent) = start("dial-ipv6");
    let (listener, port) = loop {
        let listener = match TcpListener::bind("[::1]:0") {
            Ok(listener) => listener,
            Err(error) => {
                eprintln!("SKIP: this machine has no IPv6 loopback: {error}");
                return;
            }
        };
        let port = listener.local_addr().unwrap().port();
        // Another program may listen on the same port of IPv4.
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            break (listener, port);
        }
    };
    expect_capitals(&mut agent, json!({ "port": port }), move || listener.accept().unwrap().0);
}

#[test]
fn dials_a_unix_socket_by_path() {
    let (home, mut agent) = start("dial-unix");
    let listener = UnixListener::bind(home.join("socket")).unwrap();
    expect_capitals(&mut agent, json!({ "path": "socket" }), move || listener.accept().unwrap().0);
}

#[test]
fn forwards_the_peers_end_while_the_caller_still_sends() {
    let (_home, mut agent) = start("dial-half");
    let (port, server) = serve(|mut stream| {
        stream.write_all(b"first").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    let call = dial(&mut agent, json!({ "port": port }), 1 << 20);
    assert_eq!(read_to_end(&mut agent, call), b"first");
    agent.data(call, b"afterwards");
    agent.end(call);
    assert_eq!(agent.answer(call), Ok(json!({ "sent": 10, "received": 5 })));
    assert_eq!(server.join().unwrap(), "afterwards");
}

#[test]
fn carries_8_mib_in_both_directions_at_once() {
    let (_home, mut agent) = start("dial-much");
    let (port, server) = serve(|mut stream| {
        let mut buffer = vec![0; 100_000];
        while let Ok(size @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..size]).unwrap();
        }
    });
    let contents: Vec<u8> = (0..8 << 20).map(|at: u32| (at % 251) as u8).collect();
    let call = agent.begin("port.dial", json!({ "port": port, "window": 300_000 }));
    let (mut echo, mut rest) = (Vec::new(), contents.as_slice());
    while echo.len() < contents.len() {
        match agent.event(call) {
            Event::Credit(granted) => {
                let (now, later) = rest.split_at(rest.len().min(granted as usize));
                if !now.is_empty() {
                    agent.data(call, now);
                }
                rest = later;
            }
            Event::Data { bytes, .. } => {
                agent.credit(call, bytes.len());
                echo.extend_from_slice(&bytes);
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    agent.end(call);
    assert!(read_to_end(&mut agent, call).is_empty());
    assert!(echo == contents);
    assert_eq!(agent.answer(call), Ok(json!({ "sent": contents.len(), "received": contents.len() })));
    server.join().unwrap();
}

#[test]
fn stops_reading_from_the_peer_when_the_caller_grants_no_credit() {
    let (_home, mut agent) = start("dial-window");
    let (port, server) = serve(|mut stream| {
        stream.write_all(&vec![b'x'; 1 << 20]).unwrap();
    });
    let call = dial(&mut agent, json!({ "port": port }), 1000);
    agent.read_exactly(call, 1000);
    agent.assert_silent(call);
    agent.credit(call, 1000);
    assert_eq!(read_to_end(&mut agent, call).len(), (1 << 20) - 1000);
    server.join().unwrap();
}

#[test]
fn closes_the_connection_on_cancel() {
    let (_home, mut agent) = start("dial-cancel");
    let (listener, port) = listen();
    let call = dial(&mut agent, json!({ "port": port }), 1000);
    let (mut stream, _) = listener.accept().unwrap();
    agent.assert_cancels(call);
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn ends_the_call_when_the_peer_resets_the_connection() {
    let (_home, mut agent) = start("dial-reset");
    let (listener, port) = listen();
    let call = dial(&mut agent, json!({ "port": port }), 1000);
    let (stream, _) = listener.accept().unwrap();
    agent.data(call, b"never read");
    // The grant shows that the socket has the bytes. Closing the socket before it reads them resets the connection.
    assert_eq!(agent.event(call), Event::Credit(10));
    stream.peek(&mut [0; 10]).unwrap();
    drop(stream);
    assert_refused(agent.answer(call), "unavailable", "connection_reset");
}

#[test]
fn reports_why_an_address_cannot_be_dialed() {
    let (home, mut agent) = start("dial-refused");
    let free_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    drop(UnixListener::bind(home.join("stale")).unwrap());
    let cases = [
        (json!({ "port": free_port }), "unavailable", "connection_refused"),
        (json!({ "path": "stale" }), "unavailable", "connection_refused"),
        (json!({ "path": "missing" }), "not_found", "no_such_file"),
        (json!({ "path": "x".repeat(200) }), "invalid_argument", "bad_path"),
        (json!({ "port": 1, "path": "both" }), "invalid_argument", "bad_params"),
        (json!({}), "invalid_argument", "bad_params"),
        (json!({ "port": 0 }), "invalid_argument", "bad_params"),
        (json!({ "port": 65536 }), "invalid_argument", "bad_params"),
    ];
    for (mut params, code, reason) in cases {
        params["window"] = json!(1000);
        agent.assert_refuses("port.dial", params, code, reason);
    }
}
