//! Non-blocking descriptors on the event loop.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes a descriptor non-blocking and waits for it with the event loop.
pub fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    set_nonblocking(&fd)?;
    // SAFETY: an OwnedFd stays open, and is the same descriptor, for as long as the AsyncFd holds it.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}

/// As `watch`, for a descriptor that is non-blocking already and stays somebody else's.
pub fn watch_borrowed(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: the borrow keeps the descriptor open, and the same, for as long as the AsyncFd lives.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}

/// One system call, where reading and writing the flags would be two; this is on the path of every process's start.
pub fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the ioctl reads an integer.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONBIO, &on) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
