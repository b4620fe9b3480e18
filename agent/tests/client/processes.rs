//! Calls that tests of processes share.

use super::{Answer, Client, Event};
use serde_json::{Value, json};
use std::io::{Read, Write};

pub const WINDOW: usize = 1024 * 1024;

#[derive(Debug, PartialEq)]
pub struct Piece {
    pub offset: u64,
    pub source: String,
    pub dropped: u64,
    pub bytes: Vec<u8>,
}

/// A journal from an offset to its end.
#[derive(Debug)]
pub struct Output {
    pub pieces: Vec<Piece>,
    pub end: u64,
}

impl Output {
    pub fn of(&self, source: &str) -> String {
        let pieces = self.pieces.iter().filter(|piece| piece.source == source);
        String::from_utf8(pieces.flat_map(|piece| piece.bytes.clone()).collect()).expect("text")
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes.clone()).collect()
    }

    pub fn dropped(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.dropped).sum()
    }

    pub fn assert_contiguous(&self, mut offset: u64) {
        for piece in &self.pieces {
            assert_eq!(piece.offset, offset + piece.dropped);
            offset = piece.offset + piece.bytes.len() as u64;
        }
        assert_eq!(self.end, offset);
    }
}

impl<S: Read + Write> Client<S> {
    pub fn start_process(&mut self, id: &str, mut params: Value) -> u64 {
        params["process"] = json!(id);
        let answer = self.call("process.spawn", params).expect("the process starts");
        assert_eq!(answer["process"], json!(id));
        answer["pid"].as_u64().expect("a pid")
    }

    /// Starts a process and reads its output until it contains `text`. Returns the call of the output.
    pub fn start_until(&mut self, id: &str, params: Value, text: &str) -> u64 {
        self.start_process(id, params);
        let call = self.begin_output(id, 0, WINDOW);
        self.read_until(call, text);
        call
    }

    /// Starts a process and reads its output to the end.
    pub fn run(&mut self, id: &str, params: Value) -> (Output, Value) {
        self.start_process(id, params);
        let output = self.read_output(id, 0);
        (output, self.wait(id))
    }

    pub fn wait(&mut self, id: &str) -> Value {
        self.call("process.wait", json!({ "process": id })).expect("the process ends")
    }

    pub fn begin_output(&mut self, id: &str, offset: u64, window: usize) -> u64 {
        self.begin("process.output", json!({ "process": id, "offset": offset, "window": window }))
    }

    pub fn read_output(&mut self, id: &str, offset: u64) -> Output {
        let call = self.begin_output(id, offset, WINDOW);
        self.finish_output(call)
    }

    pub fn finish_output(&mut self, call: u64) -> Output {
        let mut pieces = Vec::new();
        let answer = self.for_each_piece(call, |params, bytes| pieces.push(piece(params, bytes)));
        let end = answer.expect("the output is read")["offset"].as_u64().expect("an offset");
        Output { pieces, end }
    }

    /// Reads one call's output until it contains `text`.
    pub fn read_until(&mut self, call: u64, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let shown = String::from_utf8_lossy(&seen).into_owned();
            if shown.contains(text) {
                return shown;
            }
            match self.event(call) {
                Event::Data { bytes, .. } => {
                    self.credit(call, bytes.len());
                    seen.extend_from_slice(&bytes);
                }
                other => panic!("expected {text:?} after {shown:?}, got {other:?}"),
            }
        }
    }

    pub fn stdin(&mut self, id: &str, params: Value, bytes: &[u8]) -> Answer {
        let mut params = params;
        params["process"] = json!(id);
        let call = self.begin_with("process.stdin", params, Some(bytes));
        self.answer(call)
    }

    pub fn signal(&mut self, id: &str, signal: &str, target: &str) -> Answer {
        self.call("process.signal", json!({ "process": id, "signal": signal, "target": target }))
    }

    pub fn list(&mut self) -> Vec<Value> {
        let answer = self.call("process.list", json!({})).expect("a list");
        answer["processes"].as_array().expect("an array").clone()
    }
}

fn piece(params: &Value, bytes: Vec<u8>) -> Piece {
    Piece {
        offset: params["offset"].as_u64().expect("an offset"),
        source: params["source"].as_str().expect("a source").to_string(),
        dropped: params.get("dropped").map_or(0, |dropped| dropped.as_u64().expect("a count")),
        bytes,
    }
}

/// The state of a process in /proc: 'R' runs, 'S' sleeps.
pub fn state(pid: u64) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process runs. A zombie does not.
pub fn is_alive(pid: u64) -> bool {
    !matches!(state(pid), Some('Z' | 'X') | None)
}
