//! Whom a new file belongs to.

use super::dir::check;
use super::stat::Stat;
use crate::agent::Agent;
use crate::error::Result;
use crate::user;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

impl Owner {
    /// The user a call names, or the default user.
    pub fn choose(agent: &Agent, named: Option<&str>) -> Result<Self> {
        let user = match named {
            Some(name) => user::find(name)?,
            None => user::default_user(&agent.args),
        };
        Ok(Self { uid: user.uid, gid: user.gid })
    }

    pub fn of(stat: &Stat) -> Self {
        Self { uid: stat.uid(), gid: stat.gid() }
    }

    /// Hands over an open file or directory and sets its permissions; the order matters, since changing the owner
    /// clears the set-user-id bits.
    pub fn apply(self, fd: BorrowedFd, mode: u32) -> io::Result<()> {
        let now = super::dir::stat_fd(fd)?;
        let is_other = Self::of(&now) != self;
        if is_other {
            // SAFETY: plain call on an open descriptor.
            check(unsafe { libc::fchown(fd.as_raw_fd(), self.uid, self.gid) })?;
        }
        // Not when nothing changes: whoever watches would be told of it.
        if is_other || now.mode() != mode {
            // SAFETY: plain call on an open descriptor.
            check(unsafe { libc::fchmod(fd.as_raw_fd(), mode) })?;
        }
        Ok(())
    }
}
