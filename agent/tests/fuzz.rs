//! Sends ten thousand random and mutated messages to the built agent, which must neither exit nor hang.

mod client;

use client::agent::{AgentProcess, PROGRAM, TempDir, is_root};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const MESSAGES: usize = 10_000;
const ROUND: usize = 200;
const SEED: u64 = 0x5eed_0f5a_9d91_9e45;
/// Between the first fifth and the last message.
const MOST_GROWTH_KIB: u64 = 32 * 1024;
const MAX_LINE_BYTES: usize = 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(60);
/// A user who owns nothing outside the test's directory, because messages contain random paths and commands.
const NOBODY: u32 = 54_322;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        const TELLING: &[u8] = b"\n\n{}[]\",:\\0129-e. \0\xff\xc3";
        if self.below(2) == 0 { TELLING[self.below(TELLING.len())] } else { self.below(256) as u8 }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let call = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let note = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    let mut corpus: Vec<Vec<u8>> = [
        call("ping", json!({})),
        call("hello", json!({ "generation": 1 })),
        call("exec", json!({ "cmd": "true", "stdin": "x", "timeout_ms": 5000 })),
        call("exec_code", json!({ "lang": "sh", "code": "true", "env": { "A": "b" } })),
        call("process.spawn", json!({ "process": "p", "argv": ["cat"], "stdin": true, "timeout_ms": 5000 })),
        call("process.spawn", json!({ "process": "t", "command": "true", "pty": { "rows": 24, "cols": 80 } })),
        call("process.output", json!({ "process": "p", "offset": 0, "window": 65536 })),
        call("process.signal", json!({ "process": "p", "signal": "SIGKILL", "target": "tree" })),
        call("process.resize", json!({ "process": "t", "rows": 10, "cols": 10 })),
        call("process.wait", json!({ "process": "p" })),
        call("process.list", json!({})),
        call("process.forget", json!({ "process": "p" })),
        call("read_file", json!({ "path": "a.txt" })),
        call("write_file", json!({ "path": "a.txt", "content": "x" })),
        call("list_dir", json!({ "path": "." })),
        call("file.stat", json!({ "path": "a.txt", "follow": false })),
        call("file.list", json!({ "path": ".", "depth": 2, "window": 65536 })),
        call("file.mkdir", json!({ "path": "d/e", "parents": true, "mode": 493 })),
        call("file.move", json!({ "from": "d", "to": "f", "overwrite": true })),
        call("file.remove", json!({ "path": "f", "recursive": true, "missing_ok": true })),
        call("file.chmod", json!({ "path": "a.txt", "mode": 420 })),
        call("file.read", json!({ "path": "a.txt", "offset": 0, "length": 10, "window": 1 })),
        call("file.write", json!({ "path": "b.txt", "mode": 420 })),
        call("file.watch", json!({ "path": ".", "recursive": true, "window": 65536 })),
        call("port.dial", json!({ "port": 1, "window": 65536 })),
        call("system.metrics", json!({})),
        call("system.quiesce", json!({})),
        call("system.thaw", json!({ "epoch": 3 })),
        note("stream.credit", json!({ "call": 7, "bytes": 1000 })),
        note("stream.end", json!({ "call": 7 })),
        note("cancel", json!({ "call": 7 })),
    ]
    .map(|message| format!("{message}\n").into_bytes())
    .into();
    for (method, params) in [("process.stdin", json!({ "process": "p" })), ("stream.data", json!({ "call": 7 }))] {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params, "bytes": 5 });
        corpus.push(format!("{message}\nhello\n").into_bytes());
    }
    corpus
}

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut message = corpus[random.below(corpus.len())].clone();
    // Calls with different ids run concurrently.
    if random.below(2) == 0 {
        let text = String::from_utf8_lossy(&message).replace("\"id\":7", &format!("\"id\":{}", random.below(2000)));
        message = text.into_bytes();
    }
    for _ in 0..random.below(4) {
        let at = random.below(message.len());
        match random.below(7) {
            0 => message[at] = random.byte(),
            1 => message.insert(at, random.byte()),
            2 => drop(message.remove(at)),
            3 => message.truncate(at + 1),
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                message.splice(at..at, other[from..].iter().copied());
            }
            5 => {
                let number = ["-1", "1e99", "18446744073709551616", "null", "[]", "{}", "\"\"", "0.5"][random.below(8)];
                message.splice(at..(at + 1).min(message.len()), number.bytes());
            }
            _ => message[at] ^= 1 << random.below(8),
        }
        if message.is_empty() {
            message.push(b'\n');
        }
    }
    if random.below(100) == 0 {
        return oversized(random);
    }
    if random.below(10) == 0 {
        return (0..random.below(300) + 1).map(|_| random.byte()).collect();
    }
    message
}

/// Deep JSON, lengths that no frame may have, and floods of short frames.
fn oversized(random: &mut Random) -> Vec<u8> {
    let depth = 100_000;
    match random.below(6) {
        0 => format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"params\":{}{}}}\n", "[".repeat(depth), "]".repeat(depth)).into_bytes(),
        1 => format!("{}1{}\n", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes(),
        2 => b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"process.stdin\",\"params\":{},\"bytes\":1e18}\n".to_vec(),
        3 => vec![b'x'; MAX_LINE_BYTES + 2],
        4 => b"\n".repeat(20_000),
        _ => b"{\"jsonrpc\":\"2.0\",\"method\":\"stream.credit\",\"params\":{\"call\":7,\"bytes\":18446744073709551615}}\n".repeat(500),
    }
}

struct Agent {
    process: AgentProcess,
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
    unread: Vec<u8>,
}

impl Agent {
    fn start(home: &Path) -> Self {
        // A copy, because that user may not have access to the repository.
        let program = home.join("agent");
        std::fs::copy(PROGRAM, &program).expect("a copy of the agent");
        let mut command = Command::new(program);
        command.args(["--exit-on-eof", "--journal-dir"]).arg(home.join("journals"));
        command.env("HOME", home).current_dir(home);
        if is_root() {
            std::os::unix::fs::chown(home, Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        command.stderr(File::create(home.join("stderr")).expect("a file"));
        let mut process = AgentProcess::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let (input, mut stdout) = (process.0.stdin.take().unwrap(), process.0.stdout.take().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(size @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..size].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { process, input, output, unread: Vec::new() }
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).expect("the agent runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Resynchronizes like a new caller on a byte stream that its previous caller left at any point.
    fn open_again(&mut self, id: &str) {
        let mut padding = vec![b' '; MAX_LINE_BYTES + 1];
        padding.push(b'\n');
        self.input.write_all(&padding).expect("the agent reads");
        self.input.write_all(&padding).expect("the agent reads");
        let hello = json!({ "jsonrpc": "2.0", "id": id, "method": "hello", "params": { "generation": 1 } });
        self.input.write_all(format!("{hello}\n").as_bytes()).expect("the agent reads");
        self.skip_to(&format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\""));
    }

    fn skip_to(&mut self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(at) = self.unread.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.unread.drain(..at + text.len());
                return;
            }
            let keep = self.unread.len().saturating_sub(text.len());
            self.unread.drain(..keep);
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.output.recv_timeout(left).expect("the agent answers");
            self.unread.extend_from_slice(&bytes);
        }
    }
}

#[test]
fn survives_ten_thousand_random_and_mutated_messages() {
    let home = TempDir::new("fuzz");
    let mut agent = Agent::start(&home);
    let corpus = corpus();
    let seed = std::env::var("SANDPIPER_FUZZ_SEED").map_or(SEED, |text| text.parse().expect("a number above 0"));
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut before_kib = 0;
    for round in 0..MESSAGES / ROUND {
        for _ in 0..ROUND {
            let message = mutate(&mut random, &corpus);
            agent.input.write_all(&message).expect("the agent reads");
        }
        agent.open_again(&format!("round-{round}"));
        let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"ping-{round}\",\"method\":\"ping\"}}\n");
        agent.input.write_all(ping.as_bytes()).unwrap();
        if round == MESSAGES / ROUND / 5 {
            before_kib = agent.resident_kib();
        }
        agent.skip_to(&format!("{{\"jsonrpc\":\"2.0\",\"id\":\"ping-{round}\",\"result\":{{\"pong\":true}}}}"));
    }
    let exec = r#"{"jsonrpc":"2.0","id":"last","method":"exec","params":{"cmd":"echo works"}}"#;
    agent.input.write_all(format!("{exec}\n").as_bytes()).unwrap();
    agent.skip_to(r#""stdout":"works\n""#);
    let after_kib = agent.resident_kib();
    println!("{MESSAGES} messages; resident memory after a fifth {before_kib} KiB, at the end {after_kib} KiB");
    assert!(after_kib < before_kib + MOST_GROWTH_KIB, "it grew from {before_kib} to {after_kib} KiB");
    assert!(agent.process.0.try_wait().unwrap().is_none());
    // A panic ends the release build, but only one task of the debug build.
    assert_eq!(std::fs::read_to_string(home.join("stderr")).unwrap(), "");
}
