//! Listening ports, in a network namespace of their own.

mod client;

use client::network::redirected;
use serde_json::{Value, json};
use std::net::TcpListener;

macro_rules! redirected_or_skip {
    ($name:literal) => {
        match redirected($name) {
            Some(sandbox) => sandbox,
            None => return,
        }
    };
}

fn named(ports: &Value) -> Vec<(u64, String)> {
    let ports = ports.as_array().unwrap();
    ports.iter().map(|port| (port["port"].as_u64().unwrap(), port["address"].as_str().unwrap().to_string())).collect()
}

#[test]
fn lists_each_listening_port_once_with_its_most_open_address_and_not_the_agents() {
    let mut sandbox = redirected_or_skip!("ports-list");
    sandbox.agent.call("ping", json!({})).unwrap();
    let _listeners = sandbox.inside(|| {
        ["127.0.0.1:8080", "10.0.2.2:8080", "0.0.0.0:3000", "127.0.0.1:9000"]
            .map(|address| TcpListener::bind(address).unwrap())
    });
    let listed = sandbox.agent.call("port.list", json!({})).unwrap();
    let expected = [(3000, "0.0.0.0"), (8080, "10.0.2.2"), (9000, "127.0.0.1")];
    assert_eq!(named(&listed["ports"]), expected.map(|(port, address)| (port, address.to_string())));
}

#[test]
fn reports_open_ports_first_and_then_each_that_opens_and_closes() {
    let mut sandbox = redirected_or_skip!("ports-watch");
    sandbox.agent.call("ping", json!({})).unwrap();
    let first = sandbox.inside(|| TcpListener::bind("0.0.0.0:3000")).unwrap();
    let call = sandbox.agent.begin("port.watch", json!({ "window": 65536 }));
    let mut lines = sandbox.lines(call);
    assert_eq!(lines.pop(), Some(json!({ "kind": "ready" })));
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["kind"], &lines[0]["port"]), (&json!("opened"), &json!(3000)));
    let second = sandbox.inside(|| TcpListener::bind("127.0.0.1:8080")).unwrap();
    let opened = sandbox.line(call);
    assert_eq!((&opened["kind"], &opened["port"]), (&json!("opened"), &json!(8080)));
    drop(first);
    let closed = sandbox.line(call);
    assert_eq!((&closed["kind"], &closed["port"]), (&json!("closed"), &json!(3000)));
    drop(second);
    assert_eq!(sandbox.line(call)["kind"], json!("closed"));
    sandbox.agent.assert_cancels(call);
}
