//! Reads a hundred thousand random and mutated DNS messages. None may panic, and each answer must fit its query.

use sandpiper_agent::net::dns::answer::{Answer, encode};
use sandpiper_agent::net::dns::query::{Parsed, ResponseCode, parse};
use std::net::Ipv4Addr;

const MESSAGES: usize = 100_000;
const SEED: u64 = 0x5eed_0f5a_9d91_9e45;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// Lengths, pointers and letters occur more often than other bytes.
    fn byte(&mut self) -> u8 {
        const TELLING: &[u8] = b"\0\0\x01\x02\x3f\x40\xc0\x0cazAZ09-_.*\xff";
        if self.below(2) == 0 { TELLING[self.below(TELLING.len())] } else { self.below(256) as u8 }
    }

    fn name(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..self.below(6) {
            let label = self.below(70);
            bytes.push(label as u8);
            bytes.extend((0..label).map(|_| b"abcXYZ019-_"[self.below(11)]));
        }
        bytes.push(0);
        bytes
    }

    fn message(&mut self) -> Vec<u8> {
        let mut message = vec![self.byte(), self.byte(), 1, 0, 0, 1, 0, 0, 0, 0, 0, self.below(2) as u8];
        message.extend(self.name());
        message.extend([0, self.byte(), 0, 1]);
        if self.below(3) == 0 {
            message.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
        }
        for _ in 0..self.below(3) {
            let at = self.below(message.len());
            message[at] = self.byte();
        }
        message.truncate(message.len() - if self.below(4) == 0 { self.below(message.len()) } else { 0 });
        message
    }
}

fn is_host_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()) && label.bytes().all(is_valid))
}

#[test]
fn reads_any_bytes_and_repeats_only_what_came() {
    let mut random = Random(SEED);
    let (mut queries, mut faults) = (0, 0);
    for _ in 0..MESSAGES {
        let message = random.message();
        let (echo, answers) = match parse(&message) {
            Parsed::Ignored => continue,
            Parsed::Faulty(echo, code) => {
                faults += 1;
                (echo, vec![Answer::Empty(code)])
            }
            Parsed::Query(query) => {
                queries += 1;
                assert!(query.name.is_empty() || is_host_name(&query.name), "{:?}", query.name);
                let address = Answer::Address(Ipv4Addr::new(198, 18, 0, 1));
                (query.echo, vec![address, Answer::Empty(ResponseCode::NoError), Answer::Name("some.example".into())])
            }
        };
        for answer in answers {
            let encoded = encode(&echo, &answer);
            assert_eq!(encoded[..2], message[..2], "the id");
            assert_eq!(encoded[2] & 0x80, 0x80, "an answer has the response bit");
            assert_eq!(encoded[12..12 + echo.question.len()], message[12..12 + echo.question.len()]);
            assert!(encoded.len() <= 512, "fits into one datagram");
            assert_eq!(parse(&encoded), Parsed::Ignored, "two agents never answer each other");
        }
    }
    assert!(queries > MESSAGES / 20 && faults > MESSAGES / 20, "{queries} queries, {faults} faults");
}
