//! The kernel's filesystem events.

use super::{check, own, read_into};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Every change of a directory and its entries.
pub const CHANGES: u32 = libc::IN_CREATE
    | libc::IN_MODIFY
    | libc::IN_ATTRIB
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF
    | libc::IN_ONLYDIR;

const HEAD_BYTES: usize = 16;
const BUFFER_BYTES: usize = 64 * 1024;

/// Reads from it do not wait.
pub fn open() -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor has no other owner.
    unsafe { own(libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK)) }
}

/// Returns the number of the watch. A path that is already watched keeps its number.
pub fn add(inotify: &OwnedFd, path: &CStr, mask: u32) -> io::Result<i32> {
    // SAFETY: the path is NUL-terminated.
    check(unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), mask) })
}

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

/// The pending events, in order; None if there are none.
pub fn read(inotify: &OwnedFd) -> io::Result<Option<Vec<RawEvent>>> {
    let mut buffer = Vec::new();
    match read_into(inotify.as_raw_fd(), &mut buffer, BUFFER_BYTES) {
        Ok(_) => Ok(Some(parse(&buffer))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
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
