//! A pseudo-terminal.

use crate::error::{AgentError, Result};
use crate::os::{check, descriptor};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[derive(Debug, Clone, Copy, serde::Deserialize)]
pub struct Size {
    pub rows: u16,
    pub cols: u16,
}

impl Size {
    pub fn check(self) -> Result<Self> {
        if self.rows == 0 || self.cols == 0 {
            return Err(AgentError::invalid("bad_size", "a terminal needs at least one row and one column"));
        }
        Ok(self)
    }
}

pub struct Terminal {
    pub master: Rc<AsyncFd<OwnedFd>>,
    /// Open while the process runs, so that a process can close its terminal and open it again.
    slave: RefCell<Option<OwnedFd>>,
}

impl Terminal {
    /// `owner` can open the terminal again by its name.
    pub fn open(size: Size, owner: Option<u32>) -> Result<Self> {
        let failed = |error: io::Error| AgentError::io("open", "a terminal", &error);
        let master = open("/dev/ptmx").or_else(|_| open("/dev/pts/ptmx")).map_err(failed)?;
        let slave = open_slave(&master).map_err(failed)?;
        if let Some(uid) = owner {
            // Where it fails, only reopening by name does not work.
            // SAFETY: plain call on an open descriptor.
            unsafe { libc::fchown(slave.as_raw_fd(), uid, u32::MAX) };
        }
        let master = descriptor::watch(master, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        let terminal = Self { master: Rc::new(master), slave: RefCell::new(Some(slave)) };
        terminal.resize(size)?;
        Ok(terminal)
    }

    /// The descriptor for a new process; -1 after `release`.
    pub fn slave(&self) -> RawFd {
        self.slave.borrow().as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Called when the process has exited. The terminal ends when its last descendant closes it.
    pub fn release(&self) {
        *self.slave.borrow_mut() = None;
    }

    pub fn resize(&self, size: Size) -> Result<()> {
        let size = libc::winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the ioctl reads a winsize.
        let set = check(unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &size) });
        set.map(drop).map_err(|error| AgentError::io("resize", "the terminal", &error))
    }

    /// The current end-of-input character of this terminal.
    pub fn end_of_input(&self) -> u8 {
        // SAFETY: termios is plain data and the call fills it.
        unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            let known = libc::tcgetattr(self.master.as_raw_fd(), &mut settings) == 0;
            if known { settings.c_cc[libc::VEOF] } else { 4 }
        }
    }
}

/// The terminal must not become the agent's controlling terminal.
fn open(path: &str) -> io::Result<OwnedFd> {
    File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).map(OwnedFd::from)
}

fn open_slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    let (mut number, unlocked): (libc::c_uint, libc::c_int) = (0, 0);
    // SAFETY: both ioctls work on plain integers.
    unsafe {
        check(libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &unlocked))?;
        check(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &mut number))?;
    }
    open(&format!("/dev/pts/{number}"))
}
