//! The send queue of one channel and the task that writes it.

use super::quiesce_gate::QuiesceGate;
use crate::error::AgentError;
use crate::wire::byte_stream::Writer;
use crate::wire::frame;
use crate::wire::message::CallId;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Bytes that may wait to be written. Further senders wait in order of arrival.
const QUEUE_BYTES: usize = 1024 * 1024;
/// Pieces written with one system call.
const MAX_SLICES: usize = 64;

struct Queued {
    pieces: Vec<Vec<u8>>,
    _space: Reservation,
}

impl Queued {
    fn size(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }
}

/// Space in the queue.
pub struct Reservation(OwnedSemaphorePermit);

pub struct Outbox {
    queue: RefCell<VecDeque<Queued>>,
    space: Arc<Semaphore>,
    /// True while frames taken from the queue are not completely written.
    writing: Cell<bool>,
    filled: Notify,
    drained: Notify,
    gate: Rc<QuiesceGate>,
}

impl Outbox {
    pub fn new(gate: Rc<QuiesceGate>) -> Rc<Self> {
        Rc::new(Self {
            queue: RefCell::default(),
            space: Arc::new(Semaphore::new(QUEUE_BYTES)),
            writing: Cell::new(false),
            filled: Notify::new(),
            drained: Notify::new(),
            gate,
        })
    }

    /// Queues one frame. Waits while the queue is full or the agent is quiesced.
    pub async fn send(&self, head: &str, attachment: Option<Vec<u8>>) {
        let space = self.reserve(frame_size(head, attachment.as_ref())).await;
        self.push(head, attachment, space);
    }

    /// Reserves space before the sender fetches its bytes, so that a thousand streams of one slow caller hold no memory.
    /// Use it before you await anything else: quiesce may happen during an await.
    pub async fn reserve(&self, size: usize) -> Reservation {
        loop {
            self.gate.opened().await;
            let space = self.acquire(size).await;
            // Quiesce may have happened during the wait.
            if self.gate.is_open() {
                return space;
            }
        }
    }

    /// Queues a frame in reserved space and frees what the frame does not need.
    pub fn send_reserved(&self, mut space: Reservation, head: &str, attachment: Option<Vec<u8>>) {
        let unused = space.0.num_permits().saturating_sub(frame_size(head, attachment.as_ref()));
        drop(space.0.split(unused));
        self.push(head, attachment, space);
    }

    pub async fn answer(&self, id: Option<&CallId>, outcome: &Result<Value, AgentError>) {
        self.send(&answer_line(id, outcome), None).await;
    }

    /// Like `answer`, also while the agent is quiesced.
    pub async fn answer_always(&self, id: Option<&CallId>, outcome: &Result<Value, AgentError>) {
        let head = answer_line(id, outcome);
        let space = self.acquire(frame_size(&head, None)).await;
        self.push(&head, None, space);
    }

    async fn acquire(&self, size: usize) -> Reservation {
        match Arc::clone(&self.space).acquire_many_owned(size.min(QUEUE_BYTES) as u32).await {
            Ok(permit) => Reservation(permit),
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    fn push(&self, head: &str, attachment: Option<Vec<u8>>, space: Reservation) {
        self.queue.borrow_mut().push_back(Queued { pieces: frame::encode(head, attachment), _space: space });
        self.filled.notify_one();
    }

    /// Drops the queued frames. The writer finishes those it has taken.
    pub fn clear(&self) {
        self.queue.borrow_mut().clear();
    }

    /// Resolves when nothing is queued or partly written.
    pub async fn flushed(&self) {
        loop {
            let drained = self.drained.notified();
            if self.queue.borrow().is_empty() && !self.writing.get() {
                return;
            }
            drained.await;
        }
    }

    /// Writes until the channel fails, each time all frames that have gathered.
    pub async fn run(&self, writer: Writer) -> std::io::Result<()> {
        loop {
            let frames = self.queue.take();
            if frames.is_empty() {
                self.drained.notify_waiters();
                self.filled.notified().await;
                continue;
            }
            self.writing.set(true);
            let outcome = write_all(&writer, frames).await;
            self.writing.set(false);
            outcome?;
        }
    }
}

fn frame_size(head: &str, attachment: Option<&Vec<u8>>) -> usize {
    head.len() + 1 + attachment.map_or(0, |bytes| bytes.len() + 1)
}

fn answer_line(id: Option<&CallId>, outcome: &Result<Value, AgentError>) -> String {
    let id = id.map_or_else(|| "null".to_string(), CallId::to_json);
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(error) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.to_json()),
    }
}

/// Frees a frame's space in the queue once the whole frame is written.
async fn write_all(writer: &Writer, mut frames: VecDeque<Queued>) -> std::io::Result<()> {
    let mut written = 0;
    while !frames.is_empty() {
        let mut skipped = written;
        let mut slices = Vec::new();
        for piece in frames.iter().flat_map(|frame| &frame.pieces).take(MAX_SLICES) {
            let begin = skipped.min(piece.len());
            skipped -= begin;
            slices.push(IoSlice::new(&piece[begin..]));
        }
        written += writer.write_vectored(&slices).await?;
        while let Some(first) = frames.front().map(Queued::size).filter(|size| *size <= written) {
            written -= first;
            frames.pop_front();
        }
    }
    Ok(())
}
