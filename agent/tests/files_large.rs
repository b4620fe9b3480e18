//! Contents far larger than any buffer pass through the agent with little memory.

mod client;

use client::{Client, Event, TempDir};
use serde_json::json;
use std::time::{Duration, Instant};

const SIZE: usize = 300 << 20;
const PIECE: usize = 256 * 1024;
/// A debug build's own pages and a handful of pieces; the contents would be forty times as much.
const MAX_MEMORY_KIB: u64 = 8 * 1024;
/// Code that has been used since, and what the allocator cannot give back.
const GIVEN_BACK_KIB: u64 = 1024;

/// A stream of bytes that looks random and can be made again.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_ne_bytes());
        }
    }
}

#[test]
fn three_hundred_mebibytes_go_in_and_out_unchanged_in_little_memory() {
    let home = TempDir::new("large");
    let mut agent = Client::start(home.path());
    let mut piece = vec![0; PIECE];
    agent.call("ping", json!({})).unwrap();
    let memory_before = agent.memory_kib();

    let call = agent.begin("file.write", json!({ "path": "large" }));
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let (mut credit, mut sent) = (0, 0);
    while sent < SIZE {
        while credit < PIECE {
            let Event::Credit(bytes) = agent.event(call) else { panic!("a write only grants") };
            credit += bytes as usize;
        }
        noise.fill(&mut piece);
        agent.data(call, &piece);
        credit -= PIECE;
        sent += PIECE;
    }
    agent.end(call);
    assert_eq!(agent.answer(call), Ok(json!({ "size": SIZE })));
    assert!(agent.peak_memory_kib() < MAX_MEMORY_KIB, "writing took {} KiB", agent.peak_memory_kib());

    let call = agent.begin("file.read", json!({ "path": "large", "window": 1 << 20 }));
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let (mut expected, mut received) = (Vec::new(), 0);
    loop {
        match agent.event(call) {
            Event::Data { bytes, .. } => {
                while expected.len() < bytes.len() {
                    noise.fill(&mut piece);
                    expected.extend_from_slice(&piece);
                }
                assert!(expected[..bytes.len()] == bytes, "the contents differ after {received} bytes");
                expected.drain(..bytes.len());
                received += bytes.len();
                agent.credit(call, bytes.len());
            }
            Event::Answer(answer) => {
                assert_eq!((answer, received), (Ok(json!({ "size": SIZE })), SIZE));
                break;
            }
            other => panic!("a read only sends, not {other:?}"),
        }
    }
    assert!(agent.peak_memory_kib() < MAX_MEMORY_KIB, "reading took {} KiB", agent.peak_memory_kib());
    let patience = Instant::now() + Duration::from_secs(30);
    while agent.memory_kib() > memory_before + GIVEN_BACK_KIB {
        assert!(Instant::now() < patience, "{memory_before} KiB before, {} KiB long after", agent.memory_kib());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stalled_reader_costs_little_and_holds_nobody_back() {
    let home = TempDir::new("stalled");
    let mut agent = Client::start(home.path());
    std::fs::write(home.path().join("file"), vec![b'x'; 4 << 20]).unwrap();
    let stalled: Vec<u64> =
        (0..500).map(|_| agent.begin("file.read", json!({ "path": "file", "window": 1 }))).collect();
    for call in stalled {
        assert!(matches!(agent.event(call), Event::Data { bytes, .. } if bytes.len() == 1));
    }
    let call = agent.begin("file.read", json!({ "path": "file", "window": 1 << 20 }));
    assert_eq!(agent.collect(call).1, Ok(json!({ "size": 4 << 20 })));
    assert!(agent.peak_memory_kib() < 2 * MAX_MEMORY_KIB, "{} KiB", agent.peak_memory_kib());
}
