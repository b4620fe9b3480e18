//! The kernel's events of directories, on the event loop.

use crate::os::descriptor;
use crate::os::inotify::{self, RawEvent};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub struct Inotify(AsyncFd<OwnedFd>);

impl Inotify {
    pub fn new() -> io::Result<Self> {
        Ok(Self(descriptor::watch(inotify::open()?, Interest::READABLE)?))
    }

    /// Watches an open directory.
    pub fn add(&self, dir: BorrowedFd) -> io::Result<i32> {
        // inotify needs a path. This one always leads to the open directory.
        let path = CString::new(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
        inotify::add(self.0.get_ref(), &path, inotify::CHANGES | libc::IN_EXCL_UNLINK)
    }

    pub fn remove(&self, watch: i32) {
        // Fails when the kernel has already removed the watch.
        // SAFETY: plain call without memory.
        unsafe { libc::inotify_rm_watch(self.0.as_raw_fd(), watch) };
    }

    /// The pending events, in order; None if there are none.
    pub fn try_read(&self) -> io::Result<Option<Vec<RawEvent>>> {
        inotify::read(self.0.get_ref())
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
