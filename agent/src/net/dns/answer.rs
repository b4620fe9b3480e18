//! Writes the answer to a DNS query.

use super::query::{Echo, ResponseCode};
use super::record_type::RecordType;
use std::net::Ipv4Addr;

/// How long a program may keep an address. The agent remembers stand-in addresses much longer.
const TTL_SECONDS: u32 = 30;
const IS_RESPONSE: u16 = 0x8000;
const RECURSION_DESIRED: u16 = 0x0100;
const RECURSION_AVAILABLE: u16 = 0x0080;
const CLASS_IN: u16 = 1;
/// The name at the beginning of the question, as a compressed name.
const QUESTION_NAME: [u8; 2] = [0xc0, 12];
/// What every path carries in one datagram.
const EDNS_BYTES: u16 = 1232;

pub enum Answer {
    Empty(ResponseCode),
    Address(Ipv4Addr),
    Name(String),
}

pub fn encode(echo: &Echo, answer: &Answer) -> Vec<u8> {
    let (code, record) = match answer {
        Answer::Empty(code) => (*code, None),
        Answer::Address(address) => (ResponseCode::NoError, Some((RecordType::A, address.octets().to_vec()))),
        Answer::Name(name) => (ResponseCode::NoError, Some((RecordType::PTR, encode_name(name)))),
    };
    let desired = if echo.recursion_desired { RECURSION_DESIRED } else { 0 };
    let flags = IS_RESPONSE | echo.opcode | desired | RECURSION_AVAILABLE | code as u16;
    let counts = [!echo.question.is_empty(), record.is_some(), false, echo.has_edns].map(u16::from);
    let mut message: Vec<u8> = [echo.id, flags].iter().chain(&counts).flat_map(|field| field.to_be_bytes()).collect();
    message.extend(&echo.question);
    if let Some((record_type, data)) = record {
        message.extend(QUESTION_NAME);
        message.extend(record_type.0.to_be_bytes());
        message.extend(CLASS_IN.to_be_bytes());
        message.extend(TTL_SECONDS.to_be_bytes());
        message.extend((data.len() as u16).to_be_bytes());
        message.extend(data);
    }
    if echo.has_edns {
        // The root, the type, the size of datagrams, and no flags or options.
        message.push(0);
        message.extend(RecordType::OPT.0.to_be_bytes());
        message.extend(EDNS_BYTES.to_be_bytes());
        message.extend([0; 6]);
    }
    message
}

fn encode_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::query::{Parsed, parse, tests::query};
    use super::*;

    fn answered(message: &[u8], answer: &Answer) -> Vec<u8> {
        let Parsed::Query(query) = parse(message) else { panic!("not a query") };
        encode(&query.echo, answer)
    }

    #[test]
    fn repeats_id_and_question_and_adds_the_address() {
        let question = query("pypi.org", 1);
        let answer = answered(&question, &Answer::Address(Ipv4Addr::new(198, 18, 0, 7)));
        assert_eq!(answer[..12], [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(answer[12..question.len()], question[12..]);
        assert_eq!(answer[question.len()..], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 198, 18, 0, 7]);
    }

    #[test]
    fn carries_the_code_without_a_record() {
        let answer = answered(&query("pypi.org", 28), &Answer::Empty(ResponseCode::NameError));
        assert_eq!(answer[..12], [0x12, 0x34, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn answers_with_a_name_and_with_edns() {
        let mut message = query("1.0.18.198.in-addr.arpa", 12);
        message[11] = 1;
        message.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
        let answer = answered(&message, &Answer::Name("pypi.org".into()));
        assert_eq!(answer[6..12], [0, 1, 0, 0, 0, 1]);
        assert!(answer.windows(10).any(|bytes| bytes == b"\x04pypi\x03org\x00"));
        assert_eq!(answer[answer.len() - 11..], [0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
    }
}
