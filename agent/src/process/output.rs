//! Moves a process's output from its pipes through the journal to its readers.

use super::journal::{Journal, Piece};
use super::pipe::{self, Pipe};
use super::segments::Source;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::task::spawn_local;

/// More than a pipe holds. After so many bytes the pipe's earlier content is read, even if others keep writing.
const DRAIN_BYTES: usize = 1024 * 1024;

pub struct Output {
    journal: RefCell<Journal>,
    /// The next offset of each attached reader.
    readers: RefCell<BTreeMap<u64, u64>>,
    readers_so_far: Cell<u64>,
    /// The pipes that have not ended. A pipe that ends is closed.
    pipes: RefCell<Vec<Rc<Pipe>>>,
    /// The write ends, kept until the process exits. So an exit is one event, without one more for each pipe.
    kept_open: RefCell<Vec<OwnedFd>>,
    /// The journal offset at the process's exit.
    ended_at: Cell<Option<u64>>,
    discarding: Cell<bool>,
    grown: Notify,
    room_made: Notify,
}

impl Output {
    /// Starts to read the pipes.
    pub fn new(journal: Journal, pipes: Vec<Rc<Pipe>>, kept_open: Vec<OwnedFd>) -> Rc<Self> {
        let output = Rc::new(Self {
            journal: RefCell::new(journal),
            readers: RefCell::default(),
            readers_so_far: Cell::new(0),
            pipes: RefCell::new(pipes),
            kept_open: RefCell::new(kept_open),
            ended_at: Cell::new(None),
            discarding: Cell::new(false),
            grown: Notify::new(),
            room_made: Notify::new(),
        });
        for pipe in output.pipes.borrow().iter() {
            let task = spawn_local(pump(Rc::clone(&output), Rc::clone(pipe)));
            *pipe.task.borrow_mut() = Some(task.abort_handle());
        }
        output
    }

    pub fn start_offset(&self) -> u64 {
        self.journal.borrow().start()
    }

    pub fn end_offset(&self) -> u64 {
        self.journal.borrow().end()
    }

    pub fn ended_at(&self) -> Option<u64> {
        self.ended_at.get()
    }

    /// The position of the fastest reader.
    fn needed_from(&self) -> Option<u64> {
        self.readers.borrow().values().copied().max()
    }

    fn room(&self, source: Source) -> usize {
        if self.discarding.get() {
            return usize::MAX;
        }
        let room = self.needed_from().map(|offset| self.journal.borrow().room(source, offset));
        usize::try_from(room.unwrap_or(u64::MAX)).unwrap_or(usize::MAX)
    }

    fn append(&self, source: Source, bytes: Vec<u8>) {
        if !self.discarding.get() {
            self.journal.borrow_mut().append(source, bytes);
            self.grown.notify_waiters();
        }
    }

    /// Called when the process has exited: reads the rest of its pipes, also past a slow reader, and sets the end there.
    pub fn finish(&self) {
        let open = self.pipes.borrow().clone();
        for pipe in pipe::readable(&open) {
            self.drain(pipe);
        }
        self.ended_at.set(Some(self.end_offset()));
        self.grown.notify_waiters();
    }

    /// Closes the write ends. Call it after the answers to the exit, since it causes further events.
    pub fn release(&self) {
        self.kept_open.take();
    }

    fn drain(&self, pipe: &Pipe) {
        let mut taken = 0;
        while !pipe.ended.get() && taken < DRAIN_BYTES {
            match pipe.read(usize::MAX) {
                Ok(bytes) if bytes.is_empty() => self.end(pipe),
                Ok(bytes) => {
                    taken += bytes.len();
                    if let Some(needed_from) = self.needed_from() {
                        self.journal.borrow_mut().stretch(needed_from, bytes.len() as u64);
                    }
                    self.append(pipe.source, bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.end(pipe),
            }
        }
    }

    fn end(&self, pipe: &Pipe) {
        pipe.ended.set(true);
        if let Some(task) = pipe.task.borrow_mut().take() {
            task.abort();
        }
        self.pipes.borrow_mut().retain(|open| !open.ended.get());
    }

    /// Frees the memory of output that may never be read.
    pub fn settle(&self) {
        self.journal.borrow_mut().settle();
    }

    /// From now on reads and discards output, so that descendants can still write. Attached readers get the output up to
    /// this point.
    pub fn discard(&self) {
        self.discarding.set(true);
        self.free_unread();
        self.room_made.notify_waiters();
    }

    fn free_unread(&self) {
        if self.discarding.get() && self.readers.borrow().is_empty() {
            *self.journal.borrow_mut() = Journal::new(0, Default::default());
        }
    }

    pub fn attach(self: &Rc<Self>, offset: u64) -> Reader {
        let key = self.readers_so_far.get();
        self.readers_so_far.set(key + 1);
        self.readers.borrow_mut().insert(key, offset);
        Reader { output: Rc::clone(self), key, least_end: self.end_offset() }
    }
}

async fn pump(output: Rc<Output>, pipe: Rc<Pipe>) {
    while !pipe.ended.get() {
        let room_made = output.room_made.notified();
        if output.room(pipe.source) == 0 {
            room_made.await;
            continue;
        }
        let Ok(mut ready) = pipe.fd.readable().await else { return };
        // The other pipe may have used the space during the wait.
        let room = output.room(pipe.source);
        if room == 0 {
            continue;
        }
        match ready.try_io(|_| pipe.read(room)) {
            Ok(Ok(bytes)) if bytes.is_empty() => output.end(&pipe),
            Ok(Ok(bytes)) => output.append(pipe.source, bytes),
            Ok(Err(_)) => output.end(&pipe),
            Err(_would_block) => {}
        }
    }
}

/// While a reader is attached, the process waits instead of losing bytes that the fastest reader has not read.
pub struct Reader {
    output: Rc<Output>,
    key: u64,
    /// The end at the time of attaching: the reader gets everything before it, also output after the process's exit.
    least_end: u64,
}

impl Reader {
    pub fn position(&self) -> u64 {
        self.output.readers.borrow()[&self.key]
    }

    /// True when there are bytes to read; false when the process has exited and the reader has read everything.
    pub async fn ready(&self) -> bool {
        loop {
            let grown = self.output.grown.notified();
            let position = self.position();
            match self.output.ended_at.get() {
                Some(end) if position >= end.max(self.least_end) => return false,
                _ if position < self.output.end_offset() => return true,
                _ => grown.await,
            }
        }
    }

    pub fn read(&self, most: usize) -> Option<Piece> {
        let piece = self.output.journal.borrow_mut().read(self.position(), most)?;
        let next = piece.offset + piece.bytes.len() as u64;
        self.output.readers.borrow_mut().insert(self.key, next);
        self.output.room_made.notify_waiters();
        Some(piece)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.output.readers.borrow_mut().remove(&self.key);
        self.output.free_unread();
        self.output.room_made.notify_waiters();
    }
}
