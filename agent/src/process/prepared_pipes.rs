//! Pipes opened while no caller waits, which saves the next process start some system calls.

use super::pipe::{self, Pipe};
use super::segments::Source;
use crate::error::{AgentError, Result};
use crate::os::descriptor;
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::io::Interest;

/// A pipe for the output of a process: the agent's end, on the event loop, and the process's end.
pub struct OutputPipe {
    pub ours: Rc<Pipe>,
    pub theirs: OwnedFd,
}

impl OutputPipe {
    fn open(source: Source) -> io::Result<Self> {
        let (ours, theirs) = pipe::pair()?;
        Ok(Self { ours: Pipe::new(source, Rc::new(descriptor::watch(ours, Interest::READABLE)?)), theirs })
    }
}

#[derive(Default)]
pub struct PreparedPipes {
    outputs: RefCell<Option<[OutputPipe; 2]>>,
    plain: RefCell<Option<(OwnedFd, OwnedFd)>>,
    /// A descriptor to close.
    used: RefCell<Option<OwnedFd>>,
}

impl PreparedPipes {
    /// For stdout and stderr.
    pub fn outputs(&self) -> Result<[OutputPipe; 2]> {
        let made = self.outputs.take().map_or_else(open_outputs, Ok);
        made.map_err(|error| AgentError::io("open", "a pipe", &error))
    }

    /// A blocking pipe: its read and write end.
    pub fn plain(&self) -> Result<(OwnedFd, OwnedFd)> {
        let made = self.plain.take().map_or_else(pipe::pair, Ok);
        made.map_err(|error| AgentError::io("open", "a pipe", &error))
    }

    /// Closes a descriptor at the next `refill`.
    pub fn close_later(&self, fd: OwnedFd) {
        self.used.replace(Some(fd));
    }

    /// Opens the missing pipes. If that fails, the next process start tries again and reports the error.
    pub fn refill(&self) {
        self.used.take();
        if self.outputs.borrow().is_none() {
            *self.outputs.borrow_mut() = open_outputs().ok();
        }
        if self.plain.borrow().is_none() {
            *self.plain.borrow_mut() = pipe::pair().ok();
        }
    }
}

fn open_outputs() -> io::Result<[OutputPipe; 2]> {
    Ok([OutputPipe::open(Source::Stdout)?, OutputPipe::open(Source::Stderr)?])
}
