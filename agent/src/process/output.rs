//! A process's output on its way from the pipes through the journal to its readers.

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

/// More than a pipe holds, so that reading this much takes everything that was in it, however fast others refill it.
const DRAIN_BYTES: usize = 1024 * 1024;

pub struct Output {
    journal: RefCell<Journal>,
    /// Next offset of each attached reader.
    readers: RefCell<BTreeMap<u64, u64>>,
    readers_so_far: Cell<u64>,
    /// Those that have not ended; each is closed when it has.
    pipes: RefCell<Vec<Rc<Pipe>>>,
    /// The writing ends, kept until the process has exited: so its exit is one event and not one for each pipe first.
    kept_open: RefCell<Vec<OwnedFd>>,
    /// Journal offset that the process had reached when it exited.
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

    /// Where the fastest reader is; None when nobody reads.
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

    /// The process has exited: takes what is still in its pipes, past any reader that lags, and sets the end there.
    pub fn finish(&self) {
        let open = self.pipes.borrow().clone();
        for pipe in pipe::readable(&open) {
            self.drain(pipe);
        }
        self.ended_at.set(Some(self.end_offset()));
        self.grown.notify_waiters();
    }

    /// Lets the pipes end with those who still write to them, once the process's own end has been told.
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

    /// Gives back the memory of output that is kept for somebody who may never come.
    pub fn settle(&self) {
        self.journal.borrow_mut().settle();
    }

    /// From now on output is read and thrown away, so that those who still write it are not killed by it. Readers that
    /// are attached still get what there was.
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
        // The other pipe may have used the room up meanwhile.
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

/// Somebody who reads; while one is attached the process waits rather than lose what the fastest has not had.
pub struct Reader {
    output: Rc<Output>,
    key: u64,
    /// What was there at the beginning is read in any case, also when it came after the process's end.
    least_end: u64,
}

impl Reader {
    pub fn position(&self) -> u64 {
        self.output.readers.borrow()[&self.key]
    }

    /// True when there is something to read, false when everything has been read and the process has exited.
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
