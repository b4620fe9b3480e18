//! The kernel's filesystem events.

use crate::os::{check, descriptor, own};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const BUFFER_BYTES: usize = 64 * 1024;
const HEAD_BYTES: usize = 16;

const MASK: u32 = libc::IN_CREATE
    | libc::IN_MODIFY
    | libc::IN_ATTRIB
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF
    | libc::IN_ONLYDIR
    | libc::IN_EXCL_UNLINK;

#[derive(Debug)]
pub struct RawEvent {
    pub watch: i32,
    pub mask: u32,
    /// The same in both events of a rename.
    pub cookie: u32,
    /// The entry in the watched directory; empty for the directory itself.
    pub name: Vec<u8>,
}

impl RawEvent {
    pub fn is(&self, mask: u32) -> bool {
        self.mask & mask != 0
    }
}

pub struct Inotify(AsyncFd<OwnedFd>);

impl Inotify {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the new descriptor has no other owner.
        let fd = unsafe { own(libc::inotify_init1(libc::IN_CLOEXEC)) }?;
        Ok(Self(descriptor::watch(fd, Interest::READABLE)?))
    }

    /// Watches an open directory. A directory that is already watched keeps its number.
    pub fn add(&self, dir: BorrowedFd) -> io::Result<i32> {
        // inotify needs a path. This one always leads to the open directory.
        let path = CString::new(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
        // SAFETY: the path is NUL-terminated.
        check(unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), path.as_ptr(), MASK) })
    }

    pub fn remove(&self, watch: i32) {
        // Fails when the kernel has already removed the watch.
        // SAFETY: plain call without memory.
        unsafe { libc::inotify_rm_watch(self.0.as_fd().as_raw_fd(), watch) };
    }

    /// The pending events, in order; None if there are none.
    pub fn try_read(&self) -> io::Result<Option<Vec<RawEvent>>> {
        let mut buffer = vec![0u8; BUFFER_BYTES];
        loop {
            // SAFETY: the buffer is writable for its length.
            match check(unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) }) {
                Ok(size) => return Ok(Some(parse(&buffer[..size as usize]))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for events.
    pub async fn read(&self) -> io::Result<Vec<RawEvent>> {
        loop {
            let mut ready = self.0.readable().await?;
            match self.try_read()? {
                Some(events) => return Ok(events),
                None => ready.clear_ready(),
            }
        }
    }
}

/// `struct inotify_event`: watch, mask, cookie, length of the name, and the name padded with NULs.
fn parse(mut bytes: &[u8]) -> Vec<RawEvent> {
    let mut events = Vec::new();
    while bytes.len() >= HEAD_BYTES {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let end = (HEAD_BYTES + word(12) as usize).min(bytes.len());
        let name = bytes[HEAD_BYTES..end].split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        events.push(RawEvent { watch: word(0) as i32, mask: word(4), cookie: word(8), name });
        bytes = &bytes[end..];
    }
    events
}
