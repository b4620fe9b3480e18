//! The owner of a new file.

use super::dir::check;
use super::stat::Stat;
use crate::args::Args;
use crate::error::Result;
use crate::os::user;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::fchown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

impl Owner {
    /// The user that a call names, or the default user.
    pub fn choose(args: &Args, named: Option<&str>) -> Result<Self> {
        let user = match named {
            Some(name) => user::find(name)?,
            None => user::default_user(args),
        };
        Ok(Self { uid: user.uid, gid: user.gid })
    }

    pub fn of(stat: &Stat) -> Self {
        Self { uid: stat.uid(), gid: stat.gid() }
    }

    /// Sets the owner and then the permissions of an open file or directory. A change of owner clears the set-user-id bit.
    pub fn apply(self, fd: BorrowedFd, mode: u32) -> io::Result<()> {
        let now = super::dir::stat_fd(fd)?;
        let is_other = Self::of(&now) != self;
        if is_other {
            fchown(fd, Some(self.uid), Some(self.gid))?;
        }
        // Skipped when nothing changes: a watch would report it.
        if is_other || now.mode() != mode {
            // SAFETY: plain call on an open descriptor.
            check(unsafe { libc::fchmod(fd.as_raw_fd(), mode) })?;
        }
        Ok(())
    }
}
