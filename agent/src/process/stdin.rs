//! The standard input of a process.

use super::terminal::Terminal;
use crate::error::{AgentError, Code, Result};
use crate::os::descriptor;
use crate::wire::limits::MAX_PENDING_STDIN_BYTES;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;

enum Sink {
    None,
    Pipe(Rc<AsyncFd<OwnedFd>>),
    Terminal(Rc<Terminal>),
    Closed,
}

pub struct Stdin {
    sink: RefCell<Sink>,
    /// Bytes that the pipe or terminal has taken.
    offset: Cell<u64>,
    /// Bytes that wait in unanswered calls.
    pending: Cell<usize>,
    /// Calls write one after the other, in order of arrival.
    writing: Mutex<()>,
}

impl Stdin {
    pub fn none() -> Self {
        Self::new(Sink::None)
    }

    pub fn pipe(fd: AsyncFd<OwnedFd>) -> Self {
        Self::new(Sink::Pipe(Rc::new(fd)))
    }

    pub fn terminal(terminal: Rc<Terminal>) -> Self {
        Self::new(Sink::Terminal(terminal))
    }

    fn new(sink: Sink) -> Self {
        Self { sink: RefCell::new(sink), offset: Cell::new(0), pending: Cell::new(0), writing: Mutex::new(()) }
    }

    pub fn offset(&self) -> u64 {
        self.offset.get()
    }

    /// Resolves with the new offset when all bytes are taken. `at` is the offset of the first byte: the bytes before the
    /// current offset are skipped, so a caller can repeat a write.
    pub async fn write(&self, bytes: &[u8], at: Option<u64>, close: bool) -> Result<u64> {
        let _waiting = Waiting::begin(&self.pending, bytes.len())?;
        let _writing = self.writing.lock().await;
        let taken = match at {
            Some(at) if at > self.offset.get() => {
                let message = format!("offset {at} is beyond the {} bytes of input taken so far", self.offset.get());
                return Err(AgentError::new(Code::FailedPrecondition, "stdin_gap", message));
            }
            Some(at) => usize::try_from(self.offset.get() - at).unwrap_or(usize::MAX).min(bytes.len()),
            None => 0,
        };
        self.write_all(&bytes[taken..]).await?;
        if close {
            self.close().await?;
        }
        Ok(self.offset.get())
    }

    async fn write_all(&self, mut rest: &[u8]) -> Result<()> {
        while !rest.is_empty() {
            let size = descriptor::write_some(&*self.fd()?, rest).await.map_err(|error| self.refused(&error))?;
            self.offset.set(self.offset.get() + size as u64);
            rest = &rest[size..];
        }
        Ok(())
    }

    fn fd(&self) -> Result<Rc<AsyncFd<OwnedFd>>> {
        match &*self.sink.borrow() {
            Sink::Pipe(fd) => Ok(Rc::clone(fd)),
            Sink::Terminal(terminal) => Ok(Rc::clone(&terminal.master)),
            Sink::Closed => Err(closed()),
            Sink::None => {
                let message = "this process was started without standard input";
                Err(AgentError::new(Code::FailedPrecondition, "no_stdin", message)
                    .hint("start it with \"stdin\": true"))
            }
        }
    }

    fn refused(&self, error: &io::Error) -> AgentError {
        match error.raw_os_error() {
            Some(libc::EPIPE | libc::EIO) => {
                self.shut();
                closed()
            }
            _ => AgentError::io("write to", "the process's input", error),
        }
    }

    /// A terminal gets its end-of-input character and stays open. Closing again has no effect.
    async fn close(&self) -> Result<()> {
        let terminal = match &*self.sink.borrow() {
            Sink::Terminal(terminal) => Some(Rc::clone(terminal)),
            _ => None,
        };
        match terminal {
            Some(terminal) => {
                let end = [terminal.end_of_input()];
                descriptor::write_some(&terminal.master, &end).await.map_err(|error| self.refused(&error))?;
            }
            None => self.shut(),
        }
        Ok(())
    }

    /// Frees the descriptor.
    pub fn shut(&self) {
        self.sink.replace_with(|sink| if matches!(sink, Sink::None) { Sink::None } else { Sink::Closed });
    }
}

fn closed() -> AgentError {
    AgentError::new(Code::FailedPrecondition, "stdin_closed", "the process's standard input is closed")
}

/// Counts a call's bytes until it is answered or canceled.
struct Waiting<'a> {
    pending: &'a Cell<usize>,
    size: usize,
}

impl<'a> Waiting<'a> {
    fn begin(pending: &'a Cell<usize>, size: usize) -> Result<Self> {
        if pending.get() + size > MAX_PENDING_STDIN_BYTES {
            let message = format!("{} bytes of input already wait for this process", pending.get());
            return Err(AgentError::new(Code::ResourceExhausted, "stdin_full", message)
                .hint("send more after an earlier process.stdin is answered"));
        }
        pending.set(pending.get() + size);
        Ok(Self { pending, size })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pending.set(self.pending.get() - self.size);
    }
}
