//! DNS in a network namespace whose queries are redirected to the agent.

mod client;

use client::network::{Redirected, answer, end_of, query, redirected};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};

const A: u16 = 1;
const PTR: u16 = 12;
const AAAA: u16 = 28;
const HTTPS: u16 = 65;
const REFUSED: u8 = 5;

macro_rules! redirected_or_skip {
    ($name:literal) => {
        match redirected($name) {
            Some(sandbox) => sandbox,
            None => return,
        }
    };
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 1500];
    let size = socket.recv(&mut buffer).expect("an answer");
    buffer[..size].to_vec()
}

/// Asks, answers with this outcome, and returns the code and the records.
fn resolve(sandbox: &mut Redirected, serving: u64, name: &str, record_type: u16, outcome: &str) -> (u8, Vec<u8>) {
    let asked = query(77, name, record_type);
    let socket = sandbox.ask(&asked);
    let line = sandbox.line(serving);
    assert_eq!(line["kind"], json!("query"));
    decide(sandbox, &line, outcome);
    answer(&asked, &receive(&socket))
}

fn decide(sandbox: &mut Redirected, line: &Value, outcome: &str) {
    let params = json!({ "query": line["query"], "outcome": outcome });
    assert_eq!(sandbox.agent.call("net.answer", params), Ok(json!({})));
}

/// The address in the one record of an answer.
fn address(records: &[u8]) -> String {
    assert_eq!(records.len(), 16, "one record");
    records[12..].iter().map(u8::to_string).collect::<Vec<_>>().join(".")
}

#[test]
fn gives_a_name_one_address_and_names_the_flow_that_dials_it() {
    let mut sandbox = redirected_or_skip!("dns-stand-in");
    let serving = sandbox.serve();
    let asked = query(7, "PyPI.org", A);
    let socket = sandbox.ask(&asked);
    let line = sandbox.line(serving);
    assert_eq!(line, json!({ "kind": "query", "query": line["query"], "name": "pypi.org", "type": "A" }));
    decide(&mut sandbox, &line, "stand_in");
    let (code, records) = answer(&asked, &receive(&socket));
    assert_eq!((code, address(&records).as_str()), (0, "198.18.0.1"));
    assert_eq!(address(&resolve(&mut sandbox, serving, "other.example", A, "stand_in").1), "198.18.0.2");
    assert_eq!(address(&resolve(&mut sandbox, serving, "pypi.org", A, "stand_in").1), "198.18.0.1");
    let stream = sandbox.connect("198.18.0.1:443");
    let flow = sandbox.line(serving);
    assert_eq!((&flow["name"], &flow["address"]), (&json!("pypi.org"), &json!("198.18.0.1")));
    drop(stream);
    // A new caller finds the same map.
    sandbox.agent.call("hello", json!({ "generation": 2 })).unwrap();
    let serving = sandbox.serve();
    assert_eq!(address(&resolve(&mut sandbox, serving, "pypi.org", A, "stand_in").1), "198.18.0.1");
}

#[test]
fn answers_each_outcome_and_gives_addresses_of_ipv4_only() {
    let mut sandbox = redirected_or_skip!("dns-outcomes");
    let serving = sandbox.serve();
    for (outcome, code) in [("empty", 0), ("server_failure", 2), ("name_error", 3), ("refused", REFUSED)] {
        assert_eq!(resolve(&mut sandbox, serving, "some.example", A, outcome), (code, vec![]), "{outcome}");
    }
    for record_type in [AAAA, HTTPS, 64, 9999] {
        assert_eq!(resolve(&mut sandbox, serving, "some.example", record_type, "stand_in"), (0, vec![]));
    }
    let socket = sandbox.ask(&query(1, "some.example", 9999));
    assert_eq!(sandbox.line(serving)["type"], json!("TYPE9999"));
    drop(socket);
}

#[test]
fn refuses_queries_that_no_caller_serves_and_those_that_wait_when_the_caller_leaves() {
    let mut sandbox = redirected_or_skip!("dns-unserved");
    sandbox.agent.call("ping", json!({})).unwrap();
    let asked = query(7, "some.example", A);
    assert_eq!(answer(&asked, &receive(&sandbox.ask(&asked))).0, REFUSED);
    let serving = sandbox.serve();
    let socket = sandbox.ask(&asked);
    sandbox.line(serving);
    sandbox.agent.assert_cancels(serving);
    assert_eq!(answer(&asked, &receive(&socket)).0, REFUSED);
}

#[test]
fn announces_a_repeated_query_once() {
    let mut sandbox = redirected_or_skip!("dns-repeated");
    let serving = sandbox.serve();
    let asked = query(7, "some.example", A);
    let socket = sandbox.ask(&asked);
    socket.send(&asked).unwrap();
    let line = sandbox.line(serving);
    sandbox.agent.assert_silent(serving);
    decide(&mut sandbox, &line, "stand_in");
    assert_eq!(answer(&asked, &receive(&socket)).0, 0);
}

#[test]
fn names_a_stand_in_address_without_asking_the_caller() {
    let mut sandbox = redirected_or_skip!("dns-reverse");
    let serving = sandbox.serve();
    resolve(&mut sandbox, serving, "some.example", A, "stand_in");
    let asked = query(8, "1.0.18.198.in-addr.arpa", PTR);
    let (code, records) = answer(&asked, &receive(&sandbox.ask(&asked)));
    assert_eq!(code, 0);
    assert!(records.ends_with(b"\x04some\x07example\x00"));
    sandbox.agent.assert_silent(serving);
    assert_eq!(resolve(&mut sandbox, serving, "7.2.0.192.in-addr.arpa", PTR, "name_error").0, 3);
}

#[test]
fn answers_malformed_queries_itself_and_ignores_what_is_no_query() {
    let mut sandbox = redirected_or_skip!("dns-malformed");
    let serving = sandbox.serve();
    let mut two_questions = query(7, "some.example", A);
    two_questions[5] = 2;
    assert_eq!(receive(&sandbox.ask(&two_questions))[3] & 0x0f, 1);
    for ignored in [&b""[..], b"short", &[0xff; 40]] {
        drop(sandbox.ask(ignored));
    }
    sandbox.agent.assert_silent(serving);
}

#[test]
fn serves_queries_over_tcp_to_any_address() {
    let mut sandbox = redirected_or_skip!("dns-tcp");
    let serving = sandbox.serve();
    let mut stream = sandbox.connect("192.0.2.53:53");
    for name in ["first.example", "second.example"] {
        let asked = query(9, name, A);
        let framed = [&(asked.len() as u16).to_be_bytes()[..], &asked].concat();
        let (start, rest) = framed.split_at(5);
        stream.write_all(start).unwrap();
        stream.write_all(rest).unwrap();
        let line = sandbox.line(serving);
        assert_eq!(line["name"], json!(name));
        decide(&mut sandbox, &line, "stand_in");
        let (code, records) = answer(&asked, &receive_framed(&mut stream));
        assert_eq!((code, records.len()), (0, 16));
    }
    // A message that is longer than any query.
    stream.write_all(&[0xff, 0xff, 0]).unwrap();
    assert!(matches!(end_of(&stream), None | Some(ErrorKind::ConnectionReset)));
}

fn receive_framed(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).unwrap();
    message
}

#[test]
fn counts_datagrams_that_are_no_queries_and_their_senders_learn_it() {
    let mut sandbox = redirected_or_skip!("dns-datagrams");
    let serving = sandbox.serve();
    let socket = sandbox.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    socket.connect("192.0.2.7:443").unwrap();
    socket.send(b"quic").unwrap();
    assert_eq!(socket.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let line = sandbox.line(serving);
    assert_eq!(line, json!({ "kind": "datagram", "address": null, "port": null, "count": 1 }));
}
