//! The source of a process's output: the read end of a pipe, or the master of a terminal.

use super::journal::PIECE_BYTES;
use super::segments::Source;
use crate::os::read_into;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

/// Smaller reads are copied out of the buffer. Larger ones take the buffer.
const HANDED_OVER_BYTES: usize = PIECE_BYTES / 4;

thread_local! {
    /// Most reads are small and this buffer is large, so it is reused.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub struct Pipe {
    pub source: Source,
    pub fd: Rc<AsyncFd<OwnedFd>>,
    pub ended: Cell<bool>,
    /// The task that reads it.
    pub task: RefCell<Option<AbortHandle>>,
}

impl Pipe {
    pub fn new(source: Source, fd: Rc<AsyncFd<OwnedFd>>) -> Rc<Self> {
        Rc::new(Self { source, fd, ended: Cell::new(false), task: RefCell::default() })
    }

    /// At most `most` bytes; empty at the end.
    pub fn read(&self, most: usize) -> io::Result<Vec<u8>> {
        let mut buffer = BUFFER.take();
        buffer.reserve_exact(PIECE_BYTES);
        let outcome = match read_into(self.fd.as_raw_fd(), &mut buffer, most.min(PIECE_BYTES)) {
            // The master of a terminal that no process has open any more.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            outcome => outcome,
        };
        if outcome.is_ok() && buffer.len() >= HANDED_OVER_BYTES {
            return Ok(buffer);
        }
        let bytes = buffer.clone();
        buffer.clear();
        BUFFER.set(buffer);
        outcome.map(|_| bytes)
    }
}

/// The read and write end of a new pipe. Both are blocking, and children do not inherit them.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    io::pipe().map(|(reading, writing)| (reading.into(), writing.into()))
}

/// The pipes that have bytes or have ended. Takes one system call for all.
pub fn readable(pipes: &[Rc<Pipe>]) -> Vec<&Rc<Pipe>> {
    let mut watched: Vec<libc::pollfd> =
        pipes.iter().map(|pipe| libc::pollfd { fd: pipe.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: the length is that of the array, and the descriptors are open.
    let has_failed = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, 0) } < 0;
    pipes.iter().zip(watched).filter(|(_, state)| has_failed || state.revents != 0).map(|(pipe, _)| pipe).collect()
}
