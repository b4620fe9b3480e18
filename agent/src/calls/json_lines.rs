//! JSON lines on a call's stream: several per message, none split between two.

use super::call::Call;
use super::window::Window;
use crate::error::{AgentError, Code, Result};
use serde::Serialize;

const BATCH_BYTES: u64 = 64 * 1024;

pub struct JsonLines<'a> {
    call: &'a Call,
    window: Window,
    pending: Vec<u8>,
}

impl<'a> JsonLines<'a> {
    pub fn new(call: &'a Call, window: Window) -> Self {
        call.stream.add_credit(window.bytes());
        Self { call, window, pending: Vec::new() }
    }

    /// Waits while the caller's credit does not cover the pending lines.
    pub async fn push(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value)
            .map_err(|error| AgentError::new(Code::Internal, "io_error", error.to_string()))?;
        line.push(b'\n');
        if (self.pending.len() + line.len()) as u64 > BATCH_BYTES.min(self.window.bytes()) {
            self.flush().await?;
        }
        self.pending.append(&mut line);
        Ok(())
    }

    pub async fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.call.send_whole(std::mem::take(&mut self.pending), self.window.bytes()).await
    }
}
