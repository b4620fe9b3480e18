//! A byte stream that outlives its caller: FIFOs on which one caller stops at any point and the next continues.

mod client;

use client::agent::{AgentProcess, TempDir, agent_command, make_fifo};
use client::processes::is_alive;
use client::{Client, Event, eventually};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Write};
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
        Fifos { input: open("in"), output: open("out") }
    }
}

struct Fifos {
    input: File,
    output: File,
}

impl Read for Fifos {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.read(buffer)
    }
}

impl Write for Fifos {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Pads, sends hello and skips to its answer, as docs/agent-protocol.md describes.
fn open_again(mut fifos: Fifos, id: &str) -> (Client<Fifos>, Value) {
    let mut writer = fifos.input.try_clone().unwrap();
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
    (Client::on(fifos), answer)
}

#[test]
fn executes_no_part_of_an_unfinished_frame() {
    let agent = Agent::start("resync-torn");
    let (mut client, _) = open_again(agent.caller(), "first");
    client.start_process("cat", json!({ "argv": ["cat"], "stdin": true }));
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
        client.stream.write_all(unfinished.as_bytes()).unwrap();
        drop(client);
        let (next, hello) = open_again(agent.caller(), &format!("caller-{number}"));
        let info = &hello["result"]["processes"][0];
        assert_eq!((&info["process"], &info["stdin_offset"]), (&json!("cat"), &json!(0)), "after {unfinished:?}");
        client = next;
    }
    let last = client.stdin("cat", json!({ "offset": 0, "close": true }), b"good");
    assert_eq!(last, Ok(json!({ "offset": 4 })));
    client.wait("cat");
    assert_eq!(client.read_output("cat", 0).bytes(), b"good");
    assert!(!agent.home.join("touched").exists());
}

#[test]
fn cancels_the_calls_of_the_previous_caller_on_hello() {
    let agent = Agent::start("resync-calls");
    let (mut client, _) = open_again(agent.caller(), "first");
    client.begin("exec", json!({ "cmd": "echo $$ > pid.new; mv pid.new pid; sleep 1000" }));
    let pid_file = agent.home.join("pid");
    eventually("the command to start", || pid_file.exists());
    let pid = std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    drop(client);
    let (mut client, _) = open_again(agent.caller(), "second");
    eventually("the command to end", || !is_alive(pid));
    assert_eq!(client.call("ping", json!({})), Ok(json!({ "pong": true })));
}

#[test]
fn lets_a_new_caller_continue_reading_at_the_previous_offset() {
    let agent = Agent::start("resync-output");
    let (mut client, _) = open_again(agent.caller(), "first");
    client.start_process("seq", json!({ "argv": ["seq", "1", "300000"] }));
    let call = client.begin_output("seq", 0, 1 << 20);
    let mut seen = Vec::new();
    while seen.len() < 1000 {
        let Event::Data { params, bytes } = client.event(call) else { panic!("expected data") };
        assert_eq!(params["offset"], json!(seen.len()));
        seen.extend_from_slice(&bytes);
    }
    // The caller stops while the FIFO is full of its frames.
    let fd = client.stream.output.as_raw_fd();
    eventually("a backlog", || {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the ioctl fills an integer.
        unsafe { libc::ioctl(fd, libc::FIONREAD, &mut waiting) };
        waiting > 4096
    });
    drop(client);
    let (mut client, hello) = open_again(agent.caller(), "second");
    assert!(hello["result"]["processes"][0]["end_offset"].as_u64().unwrap() >= seen.len() as u64);
    let rest = client.read_output("seq", seen.len() as u64);
    rest.assert_contiguous(seen.len() as u64);
    assert_eq!(rest.dropped(), 0);
    seen.extend_from_slice(&rest.bytes());
    let expected: Vec<u8> = (1..=300_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    assert!(seen == expected);
}

#[test]
fn thaws_when_a_new_caller_says_hello() {
    let agent = Agent::start("resync-quiesced");
    let (mut client, _) = open_again(agent.caller(), "first");
    client.start_process("yes", json!({ "command": "seq 1 1000000" }));
    let output = client.begin_output("yes", 0, 1 << 20);
    assert!(matches!(client.event(output), Event::Data { .. }));
    client.call("system.quiesce", json!({})).unwrap();
    assert_eq!(client.call("process.list", json!({})).unwrap_err().reason, "quiesced");
    assert_eq!(client.call("ping", json!({})), Ok(json!({ "pong": true })));
    drop(client);
    let (mut client, hello) = open_again(agent.caller(), "second");
    assert_eq!(hello["result"]["epoch"], json!(0));
    assert!(client.call("process.list", json!({})).is_ok());
}
