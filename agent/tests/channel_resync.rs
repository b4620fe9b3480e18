//! A byte stream that outlives its caller: FIFOs on which one caller stops at any point and the next continues.

mod client;

use client::agent::{AgentProcess, TempDir, agent_command, make_fifo};
use client::eventually;
use client::processes::is_alive;
use client::wire::{Duplex, Wire};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

const HALF: usize = 1024 * 1024 + 1;

/// The agent on a pair of FIFOs that stay open.
struct Agent {
    _process: AgentProcess,
    home: TempDir,
    _held: [File; 2],
}

impl Agent {
    fn start(name: &str) -> Self {
        let home = TempDir::new(name);
        let held = ["in", "out"].map(|name| {
            let path = home.join(name);
            make_fifo(&path);
            File::options().read(true).write(true).open(path).unwrap()
        });
        let [stdin, stdout] = held.each_ref().map(|fifo| fifo.try_clone().unwrap());
        let process = AgentProcess::spawn(agent_command(&home).stdin(stdin).stdout(stdout));
        Self { _process: process, home, _held: held }
    }

    fn caller(&self) -> Fifos {
        let open = |name| File::options().read(true).write(true).open(self.home.join(name)).unwrap();
        Fifos { reader: open("out"), writer: open("in") }
    }
}

type Fifos = Duplex<File, File>;

/// Pads, sends hello and skips to its answer, as docs/agent-protocol.md describes.
fn open_again(mut fifos: Fifos, id: &str) -> (Wire<Fifos>, Value) {
    let mut writer = fifos.writer.try_clone().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": id, "method": "hello", "params": { "generation": 1 } });
    // Reads while it writes: the agent may still be writing to the previous caller.
    let writing = std::thread::spawn(move || {
        let mut half = vec![b' '; HALF];
        half.push(b'\n');
        writer.write_all(&half).unwrap();
        writer.write_all(&half).unwrap();
        writer.write_all(format!("{hello}\n").as_bytes()).unwrap();
    });
    let wanted = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\"");
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(wanted.as_bytes()) {
        fifos.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    let mut line = wanted.into_bytes();
    while line.last() != Some(&b'\n') {
        fifos.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    writing.join().unwrap();
    let answer: Value = serde_json::from_slice(&line).expect("the answer to hello");
    (Wire::new(fifos), answer)
}

#[test]
fn executes_no_part_of_an_unfinished_frame() {
    let agent = Agent::start("resync-torn");
    let (mut wire, _) = open_again(agent.caller(), "first");
    wire.call("process.spawn", json!({ "process": "cat", "argv": ["cat"], "stdin": true }));
    let stdin = r#"{"jsonrpc":"2.0","id":5,"method":"process.stdin","params":{"process":"cat"},"bytes":6}"#;
    let touch = r#"{"jsonrpc":"2.0","id":6,"method":"exec","params":{"cmd":"touch touched"}}"#;
    let torn = [
        format!("{stdin}\n"),
        format!("{stdin}\nsec"),
        format!("{stdin}\nsecret"),
        stdin.to_string(),
        stdin[..40].to_string(),
        touch.to_string(),
        touch[..touch.len() - 1].to_string(),
        String::new(),
    ];
    for (number, unfinished) in torn.iter().enumerate() {
        wire.stream.write_all(unfinished.as_bytes()).unwrap();
        drop(wire);
        let (next, hello) = open_again(agent.caller(), &format!("caller-{number}"));
        let info = &hello["result"]["processes"][0];
        assert_eq!((&info["process"], &info["stdin_offset"]), (&json!("cat"), &json!(0)), "after {unfinished:?}");
        wire = next;
    }
    let last = wire.stdin(json!({ "process": "cat", "offset": 0, "close": true }), b"good");
    assert_eq!(last["result"], json!({ "offset": 4 }));
    wire.call("process.wait", json!({ "process": "cat" }));
    wire.begin("process.output", json!({ "process": "cat", "window": 100 }));
    assert_eq!(wire.frame().attachment.as_deref(), Some(&b"good"[..]));
    assert!(!agent.home.join("touched").exists());
}

#[test]
fn cancels_the_calls_of_the_previous_caller_on_hello() {
    let agent = Agent::start("resync-calls");
    let (mut wire, _) = open_again(agent.caller(), "first");
    wire.begin("exec", json!({ "cmd": "echo $$ > pid.new; mv pid.new pid; sleep 1000" }));
    let pid_file = agent.home.join("pid");
    eventually("the command to start", || pid_file.exists());
    let pid = std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    drop(wire);
    let (mut wire, _) = open_again(agent.caller(), "second");
    eventually("the command to end", || !is_alive(pid));
    assert_eq!(wire.call("ping", json!({}))["result"], json!({ "pong": true }));
}

#[test]
fn lets_a_new_caller_continue_reading_at_the_previous_offset() {
    let agent = Agent::start("resync-output");
    let (mut wire, _) = open_again(agent.caller(), "first");
    wire.call("process.spawn", json!({ "process": "seq", "argv": ["seq", "1", "300000"] }));
    let call = wire.begin("process.output", json!({ "process": "seq", "window": 1 << 20 }));
    let mut seen = Vec::new();
    while seen.len() < 1000 {
        let frame = wire.frame();
        assert_eq!(frame.message["params"]["call"], json!(call));
        assert_eq!(frame.message["params"]["offset"], json!(seen.len()));
        seen.extend_from_slice(&frame.attachment.unwrap());
    }
    // The caller stops while the FIFO is full of its frames.
    let fd = wire.stream.reader.as_raw_fd();
    eventually("a backlog", || {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the ioctl fills an integer.
        unsafe { libc::ioctl(fd, libc::FIONREAD, &mut waiting) };
        waiting > 4096
    });
    drop(wire);
    let (mut wire, hello) = open_again(agent.caller(), "second");
    assert!(hello["result"]["processes"][0]["end_offset"].as_u64().unwrap() >= seen.len() as u64);
    let call = wire.begin("process.output", json!({ "process": "seq", "offset": seen.len(), "window": 60 << 20 }));
    loop {
        let frame = wire.frame();
        if frame.message.get("id") == Some(&json!(call)) {
            break;
        }
        assert_eq!(frame.message["params"]["offset"], json!(seen.len()));
        seen.extend_from_slice(&frame.attachment.unwrap());
    }
    let expected: Vec<u8> = (1..=300_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    assert!(seen == expected);
}

#[test]
fn thaws_when_a_new_caller_says_hello() {
    let agent = Agent::start("resync-quiesced");
    let (mut wire, _) = open_again(agent.caller(), "first");
    wire.call("process.spawn", json!({ "process": "yes", "command": "seq 1 1000000" }));
    let output = wire.begin("process.output", json!({ "process": "yes", "window": 1 << 20 }));
    assert_eq!(wire.frame().message["params"]["call"], json!(output));
    wire.call("system.quiesce", json!({}));
    assert_eq!(wire.call("process.list", json!({}))["error"]["data"]["reason"], json!("quiesced"));
    assert_eq!(wire.call("ping", json!({}))["result"], json!({ "pong": true }));
    drop(wire);
    let (mut wire, hello) = open_again(agent.caller(), "second");
    assert_eq!(hello["result"]["epoch"], json!(0));
    assert!(wire.call("process.list", json!({})).get("result").is_some());
}
