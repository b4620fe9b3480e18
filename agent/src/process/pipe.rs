//! Where a process's output comes from: the reading end of a pipe, or a terminal's master.

use super::journal::PIECE_BYTES;
use super::segments::Source;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

/// Smaller reads are copied out of the buffer, larger ones take it along.
const HANDED_OVER_BYTES: usize = PIECE_BYTES / 4;

thread_local! {
    /// Most reads are small and this buffer is large, so one is kept.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
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
        let mut buffer = SPARE.take();
        buffer.reserve_exact(PIECE_BYTES);
        let outcome = self.read_into(&mut buffer, most.min(PIECE_BYTES));
        if outcome.is_ok() && buffer.len() >= HANDED_OVER_BYTES {
            return Ok(buffer);
        }
        let bytes = buffer.clone();
        buffer.clear();
        SPARE.set(buffer);
        outcome.map(|()| bytes)
    }

    /// `buffer` is empty and has room for `size` bytes.
    fn read_into(&self, buffer: &mut Vec<u8>, size: usize) -> io::Result<()> {
        loop {
            // SAFETY: the buffer has room for `size` bytes.
            let taken = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), size) };
            if taken >= 0 {
                // SAFETY: the kernel has written that many bytes.
                unsafe { buffer.set_len(taken as usize) };
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // A terminal's master says this when nobody has the terminal open any more.
                Some(libc::EIO) => return Ok(()),
                _ => return Err(error),
            }
        }
    }
}

/// A pipe's reading and writing end; neither is inherited and both wait.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: pipe2 fills the two descriptors, which are then ours alone.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Those that have something to read or have ended; one system call for all.
pub fn readable(pipes: &[Rc<Pipe>]) -> Vec<&Rc<Pipe>> {
    let mut watched: Vec<libc::pollfd> =
        pipes.iter().map(|pipe| libc::pollfd { fd: pipe.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: the array is as long as it is said to be, and the descriptors are open.
    let has_failed = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, 0) } < 0;
    pipes.iter().zip(watched).filter(|(_, state)| has_failed || state.revents != 0).map(|(pipe, _)| pipe).collect()
}
