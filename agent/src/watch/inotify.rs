//! The kernel's file system events.

use crate::descriptor;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
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
    /// Which watch.
    pub watch: i32,
    pub mask: u32,
    /// The same in both halves of a rename.
    pub cookie: u32,
    /// Of the entry in the watched directory; empty for the directory itself.
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
        // SAFETY: the new descriptor is ours alone.
        let fd = unsafe {
            let fd = libc::inotify_init1(libc::IN_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self(descriptor::watch(fd, Interest::READABLE)?))
    }

    /// Watches an open directory. A directory that is watched already keeps its number.
    pub fn add(&self, dir: BorrowedFd) -> io::Result<i32> {
        // inotify takes only paths; this one leads to the open directory and no other.
        let path = CString::new(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
        // SAFETY: the path is NUL-terminated.
        let watch = unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), path.as_ptr(), MASK) };
        if watch < 0 { Err(io::Error::last_os_error()) } else { Ok(watch) }
    }

    pub fn remove(&self, watch: i32) {
        // SAFETY: plain call; it fails when the kernel has dropped the watch already, which is what was wanted.
        unsafe { libc::inotify_rm_watch(self.0.as_fd().as_raw_fd(), watch) };
    }

    /// The events that wait, in order; None when none does.
    pub fn try_read(&self) -> io::Result<Option<Vec<RawEvent>>> {
        let mut buffer = vec![0u8; BUFFER_BYTES];
        loop {
            // SAFETY: the buffer is writable for its length.
            let size = unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            if size >= 0 {
                return Ok(Some(parse(&buffer[..size as usize])));
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => return Ok(None),
                _ => return Err(error),
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
