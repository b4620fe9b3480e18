//! A caller on any byte stream, for channels other than pipes.

use sandpiper_agent::wire::frame::{self, Decoder, Frame};
use serde_json::{Value, json};
use std::io::{self, Read, Write};

pub struct Wire<S> {
    pub stream: S,
    decoder: Decoder,
    unread: Vec<u8>,
    last_id: u64,
}

impl<S: Read + Write> Wire<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, decoder: Decoder::default(), unread: Vec::new(), last_id: 0 }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&json!(id))
    }

    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }), None);
        self.last_id
    }

    /// Sends bytes to a process and returns the answer.
    pub fn stdin(&mut self, params: Value, bytes: &[u8]) -> Value {
        let size = bytes.len();
        let message =
            json!({ "jsonrpc": "2.0", "id": "stdin", "method": "process.stdin", "params": params, "bytes": size });
        self.send(&message, Some(bytes));
        self.answer(&json!("stdin"))
    }

    fn send(&mut self, message: &Value, attachment: Option<&[u8]>) {
        let frame = frame::encode(&message.to_string(), attachment.map(<[u8]>::to_vec)).concat();
        self.stream.write_all(&frame).expect("the agent reads");
    }

    /// Skips messages up to the answer to `id` and returns it.
    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            let frame = self.frame();
            if frame.message.get("id") == Some(id) {
                return Value::Object(frame.message);
            }
        }
    }

    pub fn frame(&mut self) -> Frame {
        loop {
            let mut rest = &self.unread[..];
            let next = self.decoder.next(&mut rest);
            let used = self.unread.len() - rest.len();
            self.unread.drain(..used);
            if let Some(frame) = next {
                return frame.expect("the agent sends well-formed frames");
            }
            let mut buffer = [0; 64 * 1024];
            let size = self.stream.read(&mut buffer).expect("the agent answers");
            assert!(size > 0, "the agent ended the channel");
            self.unread.extend_from_slice(&buffer[..size]);
        }
    }
}

/// Two one-way streams as one.
pub struct Duplex<R, W> {
    pub reader: R,
    pub writer: W,
}

impl<R: Read, W> Read for Duplex<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl<R, W: Write> Write for Duplex<R, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
