//! The agent transfers files far larger than its memory.

mod client;

use client::{Event, eventually, start};
use serde_json::json;

const SIZE: usize = 300 << 20;
const PIECE: usize = 256 * 1024;
/// For the pages of a debug build and a few pieces. The contents are forty times larger.
const MAX_MEMORY_KIB: u64 = 8 * 1024;
/// For code that has been loaded since, and memory that the allocator cannot return.
const RETAINED_KIB: u64 = 1024;

/// A reproducible stream of random bytes.
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
fn writes_and_reads_300_mib_unchanged_in_little_memory() {
    let (_home, mut agent) = start("large");
    let mut piece = vec![0; PIECE];
    agent.call("ping", json!({})).unwrap();
    let memory_before = agent.memory_kib();

    let call = agent.begin("file.write", json!({ "path": "large" }));
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let (mut credit, mut sent) = (0, 0);
    while sent < SIZE {
        while credit < PIECE {
            let Event::Credit(bytes) = agent.event(call) else { panic!("expected credit") };
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
    let answer = agent.for_each_piece(call, |_, bytes| {
        while expected.len() < bytes.len() {
            noise.fill(&mut piece);
            expected.extend_from_slice(&piece);
        }
        assert!(expected[..bytes.len()] == bytes, "the contents differ after {received} bytes");
        expected.drain(..bytes.len());
        received += bytes.len();
    });
    assert_eq!((answer, received), (Ok(json!({ "size": SIZE })), SIZE));
    assert!(agent.peak_memory_kib() < MAX_MEMORY_KIB, "reading took {} KiB", agent.peak_memory_kib());
    eventually("the agent to return its memory", || agent.memory_kib() <= memory_before + RETAINED_KIB);
}

#[test]
fn serves_others_in_little_memory_while_readers_stall() {
    let (home, mut agent) = start("stalled");
    std::fs::write(home.join("file"), vec![b'x'; 4 << 20]).unwrap();
    let stalled: Vec<u64> =
        (0..500).map(|_| agent.begin("file.read", json!({ "path": "file", "window": 1 }))).collect();
    for call in stalled {
        assert!(matches!(agent.event(call), Event::Data { bytes, .. } if bytes.len() == 1));
    }
    let (_, answer) = agent.collect("file.read", json!({ "path": "file", "window": 1 << 20 }));
    assert_eq!(answer, Ok(json!({ "size": 4 << 20 })));
    assert!(agent.peak_memory_kib() < 2 * MAX_MEMORY_KIB, "{} KiB", agent.peak_memory_kib());
}
