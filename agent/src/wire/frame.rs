//! Frames: one line of JSON, followed by N raw bytes and a newline when the line holds `"bytes": N`.

use super::byte_stream::ReadInto;
use super::limits::{MAX_ATTACHMENT_BYTES, MAX_LINE_BYTES};
use serde_json::{Map, Value};

#[derive(Debug, PartialEq)]
pub struct Frame {
    pub message: Map<String, Value>,
    pub attachment: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NotJson,
    NotAnObject,
    LineTooLong,
    BadAttachmentSize,
    TornAttachment,
}

impl Fault {
    pub fn reason(self) -> &'static str {
        match self {
            Fault::NotJson => "not_json",
            Fault::NotAnObject => "not_an_object",
            Fault::LineTooLong => "line_too_long",
            Fault::BadAttachmentSize => "bad_attachment_size",
            Fault::TornAttachment => "torn_attachment",
        }
    }

    pub fn rpc_code(self) -> i32 {
        if self == Fault::NotJson { -32700 } else { -32600 }
    }
}

/// From this size on, a copy costs more than an additional read.
const DIRECT_BYTES: usize = 16 * 1024;

#[derive(Default)]
enum State {
    #[default]
    Line,
    /// Discards a line over the limit up to its newline.
    SkippedLine,
    Attachment(Map<String, Value>, usize),
}

/// Turns chunks of a byte stream into frames.
#[derive(Default)]
pub struct Decoder {
    state: State,
    buffer: Vec<u8>,
}

impl Decoder {
    /// Takes bytes from the front of `input`. Returns the next frame or fault, or None when it needs more bytes.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Result<Frame, Fault>> {
        while !input.is_empty() {
            let step = match self.state {
                State::Line => self.take_line(input),
                State::SkippedLine => {
                    self.skip_line(input);
                    None
                }
                State::Attachment(_, size) => self.take_attachment(input, size),
            };
            if step.is_some() {
                return step;
            }
        }
        None
    }

    /// The missing part of a large attachment, which the reader fills directly to save a copy.
    pub fn missing(&mut self) -> ReadInto<'_> {
        let missing = match self.state {
            State::Attachment(_, size) => size - self.buffer.len(),
            _ => 0,
        };
        ReadInto { bytes: &mut self.buffer, room: if missing >= DIRECT_BYTES { missing } else { 0 } }
    }

    fn take_line(&mut self, input: &mut &[u8]) -> Option<Result<Frame, Fault>> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let piece = &input[..end.unwrap_or(input.len())];
        if self.buffer.len() + piece.len() > MAX_LINE_BYTES {
            self.buffer = Vec::new();
            self.state = State::SkippedLine;
            return Some(Err(Fault::LineTooLong));
        }
        let Some(end) = end else {
            self.buffer.extend_from_slice(piece);
            *input = &[];
            return None;
        };
        *input = &input[end + 1..];
        if self.buffer.is_empty() {
            return self.end_line(piece);
        }
        let mut line = std::mem::take(&mut self.buffer);
        line.extend_from_slice(piece);
        self.end_line(&line)
    }

    fn skip_line(&mut self, input: &mut &[u8]) {
        match input.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                *input = &input[end + 1..];
                self.state = State::Line;
            }
            None => *input = &[],
        }
    }

    fn end_line(&mut self, line: &[u8]) -> Option<Result<Frame, Fault>> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let message = match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => message,
            Ok(_) => return Some(Err(Fault::NotAnObject)),
            Err(_) => return Some(Err(Fault::NotJson)),
        };
        let Some(size) = message.get("bytes") else {
            return Some(Ok(Frame { message, attachment: None }));
        };
        match size.as_u64() {
            Some(size) if size <= MAX_ATTACHMENT_BYTES as u64 => {
                self.state = State::Attachment(message, size as usize);
                None
            }
            _ => Some(Err(Fault::BadAttachmentSize)),
        }
    }

    fn take_attachment(&mut self, input: &mut &[u8], size: usize) -> Option<Result<Frame, Fault>> {
        let missing = size - self.buffer.len();
        if missing > 0 {
            // The whole attachment usually follows its line already, so one copy is enough.
            self.buffer.reserve_exact(missing);
            let taken = missing.min(input.len());
            self.buffer.extend_from_slice(&input[..taken]);
            *input = &input[taken..];
            return None;
        }
        let attachment = std::mem::take(&mut self.buffer);
        let State::Attachment(message, _) = std::mem::take(&mut self.state) else { return None };
        if input[0] != b'\n' {
            return Some(Err(Fault::TornAttachment));
        }
        *input = &input[1..];
        Some(Ok(Frame { message, attachment: Some(attachment) }))
    }
}

/// The pieces of a frame, ready to be written.
pub fn encode(head: &str, attachment: Option<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut line = Vec::with_capacity(head.len() + 1);
    line.extend_from_slice(head.as_bytes());
    line.push(b'\n');
    match attachment {
        None => vec![line],
        Some(mut bytes) => {
            bytes.push(b'\n');
            vec![line, bytes]
        }
    }
}
