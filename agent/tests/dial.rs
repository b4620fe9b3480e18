mod client;

use client::{Client, Event, TempDir};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
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

/// Reads to the end, then answers in capitals. That works only if each direction can end alone.
fn answer_in_capitals<S: Read + Write + Send + 'static>(accept: impl FnOnce() -> S + Send + 'static) -> JoinHandle<()> {
    spawn(move || {
        let mut stream = accept();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        stream.write_all(&text.to_ascii_uppercase()).unwrap();
    })
}

fn expect_capitals(agent: &mut Client, params: Value) {
    let call = dial(agent, params, 1 << 20);
    agent.data(call, b"hello ");
    agent.data(call, b"there");
    agent.end(call);
    assert_eq!(read_to_end(agent, call), b"HELLO THERE");
    assert_eq!(agent.event(call), Event::Answer(Ok(json!({ "sent": 11, "received": 11 }))));
}

#[test]
fn carries_the_answer_of_a_tcp_port_after_the_caller_ends_its_direction() {
    let home = TempDir::new("dial-tcp");
    let mut agent = Client::start(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = answer_in_capitals(move || listener.accept().unwrap().0);
    expect_capitals(&mut agent, json!({ "port": port }));
    server.join().unwrap();
}

#[test]
fn reaches_a_program_that_listens_only_on_ipv6() {
    let home = TempDir::new("dial-ipv6");
    let mut agent = Client::start(home.path());
    let listener = match TcpListener::bind("[::1]:0") {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("SKIP: this machine has no IPv6 loopback: {error}");
            return;
        }
    };
    let port = listener.local_addr().unwrap().port();
    let server = answer_in_capitals(move || listener.accept().unwrap().0);
    expect_capitals(&mut agent, json!({ "port": port }));
    server.join().unwrap();
}

#[test]
fn dials_a_unix_socket_by_path() {
    let home = TempDir::new("dial-unix");
    let mut agent = Client::start(home.path());
    let listener = UnixListener::bind(home.path().join("socket")).unwrap();
    let server = answer_in_capitals(move || listener.accept().unwrap().0);
    expect_capitals(&mut agent, json!({ "path": "socket" }));
    server.join().unwrap();
}

#[test]
fn forwards_the_peers_end_while_the_caller_still_sends() {
    let home = TempDir::new("dial-half");
    let mut agent = Client::start(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
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
    let home = TempDir::new("dial-much");
    let mut agent = Client::start(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
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
    let home = TempDir::new("dial-window");
    let mut agent = Client::start(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&vec![b'x'; 1 << 20]).unwrap();
    });
    let call = dial(&mut agent, json!({ "port": port }), 1000);
    let mut received = 0;
    while received < 1000 {
        let Event::Data { bytes, .. } = agent.event(call) else { panic!("expected data") };
        received += bytes.len();
    }
    assert_eq!(received, 1000);
    agent.assert_silent(call);
    agent.credit(call, 1000);
    assert_eq!(read_to_end(&mut agent, call).len(), (1 << 20) - 1000);
    server.join().unwrap();
}

#[test]
fn closes_the_connection_on_cancel() {
    let home = TempDir::new("dial-cancel");
    let mut agent = Client::start(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let call = dial(&mut agent, json!({ "port": port }), 1000);
    let (mut stream, _) = listener.accept().unwrap();
    agent.cancel(call);
    assert_eq!(agent.answer(call).unwrap_err().code, "canceled");
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn ends_the_call_when_the_peer_resets_the_connection() {
    let home = TempDir::new("dial-reset");
    let mut agent = Client::start(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let call = dial(&mut agent, json!({ "port": port }), 1000);
    let (stream, _) = listener.accept().unwrap();
    agent.data(call, b"never read");
    // The grant shows that the socket has the bytes. Closing the socket before it reads them resets the connection.
    assert_eq!(agent.event(call), Event::Credit(10));
    stream.peek(&mut [0; 10]).unwrap();
    drop(stream);
    let failure = agent.answer(call).unwrap_err();
    assert_eq!((failure.code.as_str(), failure.reason.as_str()), ("unavailable", "connection_reset"));
}

#[test]
fn reports_why_an_address_cannot_be_dialed() {
    let home = TempDir::new("dial-refused");
    let mut agent = Client::start(home.path());
    let free_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    drop(UnixListener::bind(home.path().join("stale")).unwrap());
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
        let failure = agent.call("port.dial", params.clone()).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.reason.as_str()), (code, reason), "{params}");
    }
}
