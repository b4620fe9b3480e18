//! Checks the agent against the golden vectors and frozen numbers of the protocol package.

mod client;

use client::{Client, start};
use sandpiper_agent::methods;
use sandpiper_agent::wire::frame::{self, Decoder, Fault, Frame};
use sandpiper_agent::wire::limits;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn protocol_file(path: &str) -> String {
    let path = format!("{}/../packages/protocol/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn vectors(name: &str) -> Vec<Value> {
    serde_json::from_str(&protocol_file(&format!("vectors/{name}.json"))).expect("a list of vectors")
}

fn base64(text: &Value) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = text.as_str().expect("base64").trim_end_matches('=');
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for character in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == character).expect("a digit of base64");
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

fn decode(wire: &[u8], chunk: usize) -> Vec<Result<Frame, Fault>> {
    let mut decoder = Decoder::default();
    let mut results = Vec::new();
    for mut input in wire.chunks(chunk) {
        while let Some(result) = decoder.next(&mut input) {
            results.push(result);
        }
    }
    results
}

#[test]
fn decodes_every_frame_however_its_bytes_are_split() {
    let vectors = vectors("frames");
    assert!(vectors.len() >= 30);
    for vector in vectors {
        let wire = base64(&vector["wire"]);
        let expected = Frame {
            message: vector["message"].as_object().unwrap().clone(),
            attachment: vector.get("attachment").map(base64),
        };
        for chunk in [1, 2, 7, wire.len()] {
            let frames = decode(&wire, chunk);
            assert_eq!(frames.len(), 1, "{}", vector["name"]);
            assert_eq!(frames[0].as_ref().unwrap(), &expected, "{} in chunks of {chunk}", vector["name"]);
        }
    }
}

#[test]
fn encodes_every_frame_exactly_as_in_the_vectors() {
    for vector in vectors("frames") {
        let wire = base64(&vector["wire"]);
        let line = wire.split(|byte| *byte == b'\n').next().unwrap();
        let encoded = frame::encode(std::str::from_utf8(line).unwrap(), vector.get("attachment").map(base64));
        assert_eq!(encoded.concat(), wire, "{}", vector["name"]);
    }
}

#[test]
fn answers_every_malformed_frame_as_in_the_vectors() {
    let (_home, mut client) = start("conformance-faults");
    for vector in vectors("faults") {
        let wire = base64(&vector["wire"]);
        for chunk in [1, wire.len()] {
            let results = decode(&wire, chunk);
            let Some(Err(fault)) = results.first() else { panic!("{} is not a fault", vector["name"]) };
            assert_eq!(json!(fault.reason()), vector["error"]["reason"], "{}", vector["name"]);
            assert_eq!(json!(fault.rpc_code()), vector["error"]["code"], "{}", vector["name"]);
        }
        client.write(&wire);
        let answer = client.frame().message;
        assert_eq!(answer["id"], Value::Null);
        assert_eq!(answer["error"]["code"], vector["error"]["code"], "{}", vector["name"]);
        assert_eq!(answer["error"]["data"]["reason"], vector["error"]["reason"], "{}", vector["name"]);
        assert!(client.call("ping", json!({})).is_ok(), "the channel works after {}", vector["name"]);
    }
}

/// The agent executes the vectors' requests, so their absolute paths become paths in the test's own directory.
fn contained(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.trim_start_matches('/')),
        Value::Array(values) => values.iter().map(contained).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), contained(value))).collect(),
        other => other.clone(),
    }
}

/// Sends a request and cancels it after its start, so that a long one ends too.
fn refusal_reason(client: &mut Client, method: &str, params: Value, attachment: Option<&[u8]>) -> Option<String> {
    let call = client.begin_with(method, params, attachment);
    assert!(client.call("ping", json!({})).is_ok());
    client.cancel(call);
    client.answer(call).err().map(|failure| failure.reason)
}

#[test]
fn accepts_the_params_of_every_request_and_refuses_wrong_ones() {
    let (_home, mut client) = start("conformance-params");
    let mut seen = 0;
    for vector in vectors("frames") {
        let message = &vector["message"];
        if vector["to"] != json!("agent") || message.get("id").is_none() {
            continue;
        }
        let method = message["method"].as_str().unwrap();
        let attachment = vector.get("attachment").map(base64);
        let params = contained(message.get("params").unwrap_or(&json!({})));
        let reason = refusal_reason(&mut client, method, params.clone(), attachment.as_deref());
        assert_ne!(reason.as_deref(), Some("bad_params"), "{}", vector["name"]);
        assert_ne!(reason.as_deref(), Some("unknown_method"), "{}", vector["name"]);
        for name in params.as_object().unwrap().keys() {
            let mut wrong = params.clone();
            wrong[name] = json!([[]]);
            let reason = refusal_reason(&mut client, method, wrong, attachment.as_deref());
            assert_eq!(reason.as_deref(), Some("bad_params"), "{} with a wrong {name}", vector["name"]);
        }
        seen += 1;
    }
    assert!(seen >= 10);
}

/// `export const NAME = 1024 * 1024;`
fn constants(source: &str) -> BTreeMap<String, u64> {
    source
        .lines()
        .filter_map(|line| line.strip_prefix("export const ")?.strip_suffix(';')?.split_once(" = "))
        .map(|(name, value)| {
            let product = value.split('*').map(|factor| factor.trim().parse::<u64>().expect("a number")).product();
            (name.to_string(), product)
        })
        .collect()
}

#[test]
fn has_the_limits_of_the_protocol() {
    let ours = BTreeMap::from(
        [
            ("PROTOCOL_GENERATION", u64::from(limits::PROTOCOL_GENERATION)),
            ("MAX_LINE_BYTES", limits::MAX_LINE_BYTES as u64),
            ("MAX_ATTACHMENT_BYTES", limits::MAX_ATTACHMENT_BYTES as u64),
            ("MAX_CALLS_IN_FLIGHT", limits::MAX_CALLS_IN_FLIGHT as u64),
            ("MAX_PENDING_STDIN_BYTES", limits::MAX_PENDING_STDIN_BYTES as u64),
        ]
        .map(|(name, value)| (name.to_string(), value)),
    );
    assert_eq!(constants(&protocol_file("src/agent/generation.ts")), ours);
}

fn frozen_methods() -> BTreeSet<String> {
    let path = format!("snapshots/generation-{}.json", limits::PROTOCOL_GENERATION);
    let snapshot: Value = serde_json::from_str(&protocol_file(&path)).expect("JSON");
    snapshot["methods"].as_object().expect("the table of methods").keys().cloned().collect()
}

#[test]
fn implements_exactly_the_methods_of_its_generation() {
    let named: BTreeSet<String> = methods::NAMES.iter().map(|name| name.to_string()).collect();
    assert_eq!(named, frozen_methods());
    assert_eq!(named.len(), methods::NAMES.len(), "every name is unique");
    let (_home, mut client) = start("conformance-methods");
    let listed = client.call("hello", json!({ "generation": 1 })).unwrap()["methods"].clone();
    assert_eq!(listed, json!(methods::NAMES));
    for name in methods::NAMES.iter().filter(|name| !name.starts_with("system.")) {
        let reason = refusal_reason(&mut client, name, json!({ "unexpected": true }), None);
        assert_ne!(reason.as_deref(), Some("unknown_method"), "{name}");
    }
    client.assert_refuses("no.such.method", json!({}), "unimplemented", "unknown_method");
}
