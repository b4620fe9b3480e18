//! A caller for tests, on any byte stream.
#![allow(dead_code, reason = "every test file uses its own part")]

pub mod agent;
pub mod network;
pub mod pipes;
pub mod processes;

use agent::{TempDir, agent_command};
use pipes::Pipes;
use sandpiper_agent::wire::frame::{self, Decoder, Frame};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, PartialEq)]
pub struct Failure {
    pub code: String,
    pub reason: String,
    pub message: String,
}

pub type Answer = Result<Value, Failure>;

/// A message about one call.
#[derive(Debug, PartialEq)]
pub enum Event {
    Data { params: Value, bytes: Vec<u8> },
    End,
    Credit(u64),
    Answer(Answer),
}

pub struct Client<S = Pipes> {
    pub stream: S,
    decoder: Decoder,
    unread: Vec<u8>,
    waiting: VecDeque<Frame>,
    last_id: u64,
}

/// An agent in an empty home.
pub fn start(name: &str) -> (TempDir, Client) {
    start_with(name, &[])
}

pub fn start_with(name: &str, options: &[&str]) -> (TempDir, Client) {
    let home = TempDir::new(name);
    let client = Client::spawn(agent_command(&home).arg("--exit-on-eof").args(options));
    (home, client)
}

impl Client {
    pub fn spawn(command: &mut Command) -> Self {
        Self::on(Pipes::spawn(command))
    }

    /// The peak resident memory of the agent.
    pub fn peak_memory_kib(&self) -> u64 {
        memory_kib(self.stream.child.id(), "VmHWM:")
    }

    pub fn memory_kib(&self) -> u64 {
        memory_kib(self.stream.child.id(), "VmRSS:")
    }
}

impl<S: Read + Write> Client<S> {
    pub fn on(stream: S) -> Self {
        Self { stream, decoder: Decoder::default(), unread: Vec::new(), waiting: VecDeque::new(), last_id: 0 }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the agent reads");
    }

    pub fn send(&mut self, mut message: Value, attachment: Option<&[u8]>) {
        if let Some(bytes) = attachment {
            message["bytes"] = json!(bytes.len());
        }
        self.write(&frame::encode(&message.to_string(), attachment.map(<[u8]>::to_vec)).concat());
    }

    /// Starts a call and returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.begin_with(method, params, None)
    }

    pub fn begin_with(&mut self, method: &str, params: Value, attachment: Option<&[u8]>) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }), attachment);
        id
    }

    pub fn notify(&mut self, method: &str, params: Value, attachment: Option<&[u8]>) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }), attachment);
    }

    pub fn data(&mut self, call: u64, bytes: &[u8]) {
        self.notify("stream.data", json!({ "call": call }), Some(bytes));
    }

    pub fn end(&mut self, call: u64) {
        self.notify("stream.end", json!({ "call": call }), None);
    }

    pub fn credit(&mut self, call: u64, bytes: usize) {
        self.notify("stream.credit", json!({ "call": call, "bytes": bytes }), None);
    }

    pub fn cancel(&mut self, call: u64) {
        self.notify("cancel", json!({ "call": call }), None);
    }

    pub fn assert_cancels(&mut self, call: u64) {
        self.cancel(call);
        assert_eq!(self.answer(call).unwrap_err().code, "canceled");
    }

    /// A call without a stream.
    pub fn call(&mut self, method: &str, params: Value) -> Answer {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Fails unless the agent refuses a call with this code and reason. Returns the message.
    #[track_caller]
    pub fn assert_refuses(&mut self, method: &str, params: Value, code: &str, reason: &str) -> String {
        println!("{method} {params}");
        assert_refused(self.call(method, params), code, reason)
    }

    /// Skips a call's stream up to its answer.
    pub fn answer(&mut self, call: u64) -> Answer {
        loop {
            if let Event::Answer(answer) = self.event(call) {
                return answer;
            }
        }
    }

    /// The next message about one call. Messages about other calls stay queued.
    pub fn event(&mut self, call: u64) -> Event {
        if let Some(frame) = self.queued(call).and_then(|at| self.waiting.remove(at)) {
            return event_of(frame);
        }
        loop {
            let frame = self.receive();
            if concerns(&frame, call) {
                return event_of(frame);
            }
            self.waiting.push_back(frame);
        }
    }

    /// Fails if the agent has sent a message about a call. A few answered pings give every task of the agent its turn.
    pub fn assert_silent(&mut self, call: u64) {
        for _ in 0..5 {
            self.call("ping", json!({})).expect("the agent answers");
        }
        assert_eq!(self.queued(call), None, "the agent sent a message about call {call}");
    }

    fn queued(&self, call: u64) -> Option<usize> {
        self.waiting.iter().position(|frame| concerns(frame, call))
    }

    /// The next frame about any call.
    pub fn frame(&mut self) -> Frame {
        self.waiting.pop_front().unwrap_or_else(|| self.receive())
    }

    fn receive(&mut self) -> Frame {
        loop {
            let mut rest = &self.unread[..];
            let next = self.decoder.next(&mut rest);
            let used = self.unread.len() - rest.len();
            self.unread.drain(..used);
            if let Some(frame) = next {
                return frame.expect("the agent sends well-formed frames");
            }
            let mut buffer = [0; 64 * 1024];
            let size = self.stream.read(&mut buffer).expect("the agent sends a frame");
            assert!(size > 0, "the agent ended the channel");
            self.unread.extend_from_slice(&buffer[..size]);
        }
    }

    /// Reads a stream up to the answer and grants what it reads.
    pub fn for_each_piece(&mut self, call: u64, mut take: impl FnMut(&Value, Vec<u8>)) -> Answer {
        loop {
            match self.event(call) {
                Event::Data { params, bytes } => {
                    self.credit(call, bytes.len());
                    take(&params, bytes);
                }
                Event::Answer(answer) => return answer,
                other => panic!("expected data or an answer, got {other:?}"),
            }
        }
    }

    /// A call whose stream is read to its end.
    pub fn collect(&mut self, method: &str, params: Value) -> (Vec<u8>, Answer) {
        let call = self.begin(method, params);
        let mut all = Vec::new();
        let answer = self.for_each_piece(call, |_, bytes| all.extend_from_slice(&bytes));
        (all, answer)
    }

    /// Reads exactly `size` bytes and grants nothing.
    pub fn read_exactly(&mut self, call: u64, size: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < size {
            let Event::Data { bytes, .. } = self.event(call) else { panic!("expected data") };
            all.extend_from_slice(&bytes);
        }
        assert_eq!(all.len(), size);
        all
    }

    /// Writes a whole file as the agent grants credit.
    pub fn write_file(&mut self, params: Value, contents: &[u8]) -> Answer {
        let call = self.begin("file.write", params);
        let mut rest = contents;
        while !rest.is_empty() {
            let mut granted = match self.event(call) {
                Event::Credit(bytes) => bytes as usize,
                Event::Answer(answer) => return answer,
                other => panic!("expected credit or an answer, got {other:?}"),
            };
            while granted > 0 && !rest.is_empty() {
                let size = granted.min(rest.len()).min(256 * 1024);
                self.data(call, &rest[..size]);
                rest = &rest[size..];
                granted -= size;
            }
        }
        self.end(call);
        self.answer(call)
    }
}

#[track_caller]
pub fn assert_refused(answer: Answer, code: &str, reason: &str) -> String {
    let failure = answer.expect_err("the agent refuses the call");
    assert_eq!((failure.code.as_str(), failure.reason.as_str()), (code, reason), "{}", failure.message);
    failure.message
}

/// Waits for a condition and fails if it does not become true.
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(becomes_true(TIMEOUT, condition), "timed out after {TIMEOUT:?} waiting for {what}");
}

fn becomes_true(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn concerns(frame: &Frame, call: u64) -> bool {
    let id = frame.message.get("id").or_else(|| frame.message.get("params").and_then(|params| params.get("call")));
    id == Some(&json!(call))
}

fn event_of(frame: Frame) -> Event {
    let message = frame.message;
    let params = message.get("params").cloned().unwrap_or_default();
    match message.get("method").and_then(Value::as_str) {
        Some("stream.data") => Event::Data { params, bytes: frame.attachment.unwrap_or_default() },
        Some("stream.end") => Event::End,
        Some("stream.credit") => Event::Credit(params["bytes"].as_u64().expect("credit has bytes")),
        Some(other) => panic!("unexpected message {other}"),
        None => Event::Answer(answer_of(&message)),
    }
}

fn answer_of(message: &serde_json::Map<String, Value>) -> Answer {
    match message.get("error") {
        None => Ok(message["result"].clone()),
        Some(error) => {
            let text = |value: &Value| value.as_str().expect("a text").to_string();
            Err(Failure {
                code: text(&error["data"]["code"]),
                reason: text(&error["data"]["reason"]),
                message: text(&error["message"]),
            })
        }
    }
}

/// A field of /proc/PID/status.
pub fn memory_kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the agent runs");
    let line = status.lines().find(|line| line.starts_with(field)).expect("the field exists");
    line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).expect("a number")
}
