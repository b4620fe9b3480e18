//! The two directions of a channel, each a non-blocking descriptor.

use crate::os::{check, descriptor};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Both directions of one socket.
pub fn split(socket: OwnedFd) -> io::Result<(Reader, Writer)> {
    Ok((Reader::new(socket.try_clone()?)?, Writer::new(socket)?))
}

pub struct Reader {
    fd: AsyncFd<OwnedFd>,
    /// A short read from a pipe or socket has emptied it, so the next read can wait for an event. A terminal returns one
    /// line at a time.
    short_read_is_all: bool,
}

impl Reader {
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: descriptor::watch(fd, Interest::READABLE)?, short_read_is_all: true })
    }

    pub fn of_terminal(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { short_read_is_all: false, ..Self::new(fd)? })
    }

    /// Fills `first`, then appends at most `most` further bytes to `rest`. Returns the number of bytes read, zero at the
    /// end of the stream.
    pub async fn read(&self, first: ReadInto<'_>, rest: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let ReadInto { bytes: first, room } = first;
        first.reserve_exact(room);
        rest.reserve_exact(most);
        loop {
            let mut ready = self.fd.readable().await?;
            match ready.try_io(|fd| append(fd.as_raw_fd(), (first, room), (rest, most))) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => {
                    if self.short_read_is_all && matches!(done, Ok(size) if 0 < size && size < room + most) {
                        ready.clear_ready();
                    }
                    return done;
                }
                Err(_would_block) => {}
            }
        }
    }
}

/// A buffer to append to, and the number of bytes wanted.
pub struct ReadInto<'a> {
    pub bytes: &'a mut Vec<u8>,
    pub room: usize,
}

fn append(
    fd: RawFd,
    (first, first_most): (&mut Vec<u8>, usize),
    (rest, rest_most): (&mut Vec<u8>, usize),
) -> io::Result<usize> {
    let slices = [slice(first, first_most), slice(rest, rest_most)];
    // SAFETY: both slices lie in the spare capacity of vectors that outlive the call.
    let size = check(unsafe { libc::readv(fd, slices.as_ptr(), slices.len() as i32) })? as usize;
    // SAFETY: the kernel has just filled that many bytes, the first slice before the second.
    unsafe {
        first.set_len(first.len() + size.min(first_most));
        rest.set_len(rest.len() + size.saturating_sub(first_most));
    }
    Ok(size)
}

fn slice(bytes: &mut Vec<u8>, most: usize) -> libc::iovec {
    let room = bytes.spare_capacity_mut();
    libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: most.min(room.len()) }
}

/// Registers with the event loop only while the descriptor is full. A permanent registration would wake the agent each
/// time the host reads.
pub struct Writer(OwnedFd);

impl Writer {
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        descriptor::set_nonblocking(&fd)?;
        Ok(Self(fd))
    }

    pub async fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            // SAFETY: IoSlice has the layout of iovec, and the slices outlive the call.
            match check(unsafe { libc::writev(self.0.as_raw_fd(), slices.as_ptr().cast(), slices.len() as i32) }) {
                Ok(size) => return Ok(size as usize),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn writable(&self) -> io::Result<()> {
        let watched = descriptor::watch_borrowed(self.0.as_fd(), Interest::WRITABLE)?;
        watched.writable().await?.retain_ready();
        Ok(())
    }
}
