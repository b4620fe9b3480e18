//! Non-blocking descriptors on the event loop.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes a descriptor non-blocking and registers it with the event loop.
pub fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    set_nonblocking(&fd)?;
    // SAFETY: an OwnedFd stays open, and is the same descriptor, while the AsyncFd holds it.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}

/// Like `watch`, for a borrowed descriptor that is already non-blocking.
pub fn watch_borrowed(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: the borrow keeps the descriptor open, and the same, while the AsyncFd lives.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}

/// FIONBIO takes one system call, fcntl two, and every process start pays for it.
pub fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the ioctl reads an integer.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONBIO, &on) }).map(drop)
}

/// Waits until the descriptor takes bytes. Returns their number.
pub async fn write_some(fd: &AsyncFd<OwnedFd>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        let mut ready = fd.writable().await?;
        // SAFETY: the slice is valid for its length.
        match ready.try_io(|fd| check(unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })) {
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(done) => return done.map(|size| size as usize),
            Err(_would_block) => {}
        }
    }
}
