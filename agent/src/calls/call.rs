//! One unanswered call and the stream that it may carry.

use super::outbox::{Outbox, Reservation};
use crate::error::{AgentError, Code, Result};
use crate::os::allocator;
use crate::wire::limits::CHUNK_BYTES;
use crate::wire::message::CallId;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::Notify;

/// An upper bound for the line before the bytes of a `stream.data`.
pub const HEAD_BYTES: usize = 512;

/// The part of a call that its session and its task share.
#[derive(Default)]
pub struct StreamState {
    /// Bytes the agent may still send.
    credit: Cell<u64>,
    credited: Notify,
    /// Bytes the caller may still send.
    granted: Cell<u64>,
    inbox: RefCell<VecDeque<Vec<u8>>>,
    ended: Cell<bool>,
    arrived: Notify,
    has_carried: Cell<bool>,
}

impl Drop for StreamState {
    fn drop(&mut self) {
        if self.has_carried.get() {
            allocator::trim_soon();
        }
    }
}

impl StreamState {
    pub fn add_credit(&self, bytes: u64) {
        self.credit.set(self.credit.get().saturating_add(bytes));
        self.credited.notify_one();
    }

    /// False when the caller exceeds its grant or sends after its end.
    pub fn deliver(&self, bytes: Vec<u8>) -> bool {
        let size = bytes.len() as u64;
        if size > self.granted.get() || self.ended.get() {
            return false;
        }
        // An empty piece costs no credit, so it must not take up memory either.
        if size == 0 {
            return true;
        }
        self.granted.set(self.granted.get() - size);
        self.has_carried.set(true);
        self.inbox.borrow_mut().push_back(bytes);
        self.arrived.notify_one();
        true
    }

    pub fn end(&self) {
        self.ended.set(true);
        self.arrived.notify_one();
    }
}

pub struct Call {
    pub id: CallId,
    pub method: String,
    pub params: Map<String, Value>,
    pub attachment: Option<Vec<u8>>,
    pub stream: Rc<StreamState>,
    pub outbox: Rc<Outbox>,
}

impl Call {
    /// Takes the parameters out, as the method's own type.
    pub fn params<T: DeserializeOwned>(&mut self) -> Result<T> {
        let params = Value::Object(std::mem::take(&mut self.params));
        serde_json::from_value(params)
            .map_err(|error| AgentError::invalid("bad_params", format!("wrong params for {}: {error}", self.method)))
    }

    /// Bytes that the agent can send without waiting.
    pub fn credit(&self) -> u64 {
        self.stream.credit.get()
    }

    /// Waits for credit and takes at most `most` of it. Return what you do not use with `stream.add_credit`.
    pub async fn take_credit(&self, most: usize) -> usize {
        loop {
            let available = self.stream.credit.get();
            if available > 0 {
                let taken = available.min(most as u64);
                self.stream.credit.set(available - taken);
                return taken as usize;
            }
            self.stream.credited.notified().await;
        }
    }

    /// Sends bytes for which credit was taken. `fields` is empty or holds further members of the params: `,"offset":0`.
    pub async fn send_data(&self, fields: &str, bytes: Vec<u8>) {
        self.stream.has_carried.set(true);
        self.outbox.send(&self.data_head(fields, bytes.len()), Some(bytes)).await;
    }

    /// Like `send_data`, with queue space from `outbox.reserve`.
    pub fn send_data_reserved(&self, space: Reservation, fields: &str, bytes: Vec<u8>) {
        self.stream.has_carried.set(true);
        self.outbox.send_reserved(space, &self.data_head(fields, bytes.len()), Some(bytes));
    }

    fn data_head(&self, fields: &str, size: usize) -> String {
        let call = self.id.to_json();
        format!(r#"{{"jsonrpc":"2.0","method":"stream.data","params":{{"call":{call}{fields}}},"bytes":{size}}}"#)
    }

    /// Sends all bytes, in pieces as credit allows.
    pub async fn send_all(&self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = self.take_credit(rest.len().min(CHUNK_BYTES)).await;
            self.send_data("", rest[..size].to_vec()).await;
            rest = &rest[size..];
        }
    }

    /// Sends bytes in one piece: waits until credit covers all of them. Refuses a window smaller than the piece, which
    /// credit could never cover.
    pub async fn send_whole(&self, bytes: Vec<u8>, window: u64) -> Result<()> {
        let size = bytes.len() as u64;
        if size > window {
            let message = format!(
                "a window of {window} bytes cannot hold a line of {size}: open the stream with a larger window"
            );
            return Err(AgentError::invalid("window_too_small", message));
        }
        while self.stream.credit.get() < size {
            self.stream.credited.notified().await;
        }
        self.stream.credit.set(self.stream.credit.get() - size);
        self.send_data("", bytes).await;
        Ok(())
    }

    pub async fn send_end(&self) {
        let head = format!(r#"{{"jsonrpc":"2.0","method":"stream.end","params":{{"call":{}}}}}"#, self.id.to_json());
        self.outbox.send(&head, None).await;
    }

    /// Lets the caller send more. The first grant also opens the stream.
    pub async fn grant(&self, bytes: usize) {
        self.stream.granted.set(self.stream.granted.get() + bytes as u64);
        let call = self.id.to_json();
        let head =
            format!(r#"{{"jsonrpc":"2.0","method":"stream.credit","params":{{"call":{call},"bytes":{bytes}}}}}"#);
        self.outbox.send(&head, None).await;
    }

    /// The caller's next bytes; None at its end. The receiver grants what it has processed.
    pub async fn receive(&self) -> Option<Vec<u8>> {
        loop {
            if let Some(bytes) = self.stream.inbox.borrow_mut().pop_front() {
                return Some(bytes);
            }
            if self.stream.ended.get() {
                return None;
            }
            self.stream.arrived.notified().await;
        }
    }
}

pub fn canceled() -> AgentError {
    AgentError::new(Code::Canceled, "canceled", "the caller canceled this call")
}
