//! Everything the agent sends on one channel: a short queue, and the task that writes it.

use crate::channel::Writer;
use crate::error::AgentError;
use crate::frame;
use crate::gate::Gate;
use crate::message::CallId;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Bytes that may wait to be written; a sender beyond it waits, in order of arrival.
const QUEUE_BYTES: usize = 1024 * 1024;
/// Written with one system call.
const MAX_SLICES: usize = 64;

struct Queued {
    pieces: Vec<Vec<u8>>,
    _room: Room,
}

impl Queued {
    fn size(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }
}

/// A place in the queue.
pub struct Room(OwnedSemaphorePermit);

pub struct Outbox {
    queue: RefCell<VecDeque<Queued>>,
    room: Arc<Semaphore>,
    /// Frames taken from the queue and not wholly written.
    writing: Cell<bool>,
    filled: Notify,
    drained: Notify,
    gate: Rc<Gate>,
}

impl Outbox {
    pub fn new(gate: Rc<Gate>) -> Rc<Self> {
        Rc::new(Self {
            queue: RefCell::default(),
            room: Arc::new(Semaphore::new(QUEUE_BYTES)),
            writing: Cell::new(false),
            filled: Notify::new(),
            drained: Notify::new(),
            gate,
        })
    }

    /// Queues one frame; waits while the queue is full or the agent is quiesced.
    pub async fn send(&self, head: &str, attachment: Option<Vec<u8>>) {
        let room = self.room(frame_size(head, attachment.as_ref())).await;
        self.push(head, attachment, room);
    }

    /// As `send`, but also while quiesced: for the answers that a quiesced agent still gives.
    pub async fn send_always(&self, head: &str) {
        let room = self.reserve(frame_size(head, None)).await;
        self.push(head, None, room);
    }

    /// Waits for a place before the bytes that will take it are fetched, so that a thousand streams that wait for a slow
    /// caller hold nothing. It must be used before anything else is awaited, or quiesce may come in between.
    pub async fn room(&self, size: usize) -> Room {
        loop {
            self.gate.opened().await;
            let room = self.reserve(size).await;
            // Quiesce may have come while this waited.
            if self.gate.is_open() {
                return room;
            }
        }
    }

    /// Queues a frame in a place that was waited for; what is too large about the place is given back.
    pub fn send_in(&self, mut room: Room, head: &str, attachment: Option<Vec<u8>>) {
        let spare = room.0.num_permits().saturating_sub(frame_size(head, attachment.as_ref()));
        drop(room.0.split(spare));
        self.push(head, attachment, room);
    }

    pub async fn answer(&self, id: Option<&CallId>, outcome: &Result<Value, AgentError>) {
        self.send(&answer_line(id, outcome), None).await;
    }

    pub async fn answer_always(&self, id: Option<&CallId>, outcome: &Result<Value, AgentError>) {
        self.send_always(&answer_line(id, outcome)).await;
    }

    async fn reserve(&self, size: usize) -> Room {
        match Arc::clone(&self.room).acquire_many_owned(size.min(QUEUE_BYTES) as u32).await {
            Ok(permit) => Room(permit),
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    fn push(&self, head: &str, attachment: Option<Vec<u8>>, room: Room) {
        self.queue.borrow_mut().push_back(Queued { pieces: frame::encode(head, attachment), _room: room });
        self.filled.notify_one();
    }

    /// Drops what the writer has not taken yet; it finishes what it has.
    pub fn clear(&self) {
        self.queue.borrow_mut().clear();
    }

    /// Resolves when nothing is queued or half written.
    pub async fn flushed(&self) {
        loop {
            let drained = self.drained.notified();
            if self.queue.borrow().is_empty() && !self.writing.get() {
                return;
            }
            drained.await;
        }
    }

    /// Writes until the channel fails; whatever has gathered goes out together.
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

/// A frame's place in the queue is free again once the whole of it is written.
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
