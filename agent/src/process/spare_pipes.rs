//! Pipes made ahead, while nobody waits, so that the next process starts with a few system calls less.

use super::pipe::{self, Pipe};
use super::segments::Source;
use crate::descriptor;
use crate::error::{AgentError, Result};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::io::Interest;

/// What a process without a terminal writes to: the agent's end on the event loop, and the process's own.
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
pub struct SparePipes {
    outputs: RefCell<Option<[OutputPipe; 2]>>,
    plain: RefCell<Option<(OwnedFd, OwnedFd)>>,
    /// Not needed any more.
    used: RefCell<Option<OwnedFd>>,
}

impl SparePipes {
    /// For stdout and stderr.
    pub fn outputs(&self) -> Result<[OutputPipe; 2]> {
        let made = self.outputs.take().map_or_else(open_outputs, Ok);
        made.map_err(|error| AgentError::io("open", "a pipe", &error))
    }

    /// Reading and writing end.
    pub fn plain(&self) -> Result<(OwnedFd, OwnedFd)> {
        let made = self.plain.take().map_or_else(pipe::pair, Ok);
        made.map_err(|error| AgentError::io("open", "a pipe", &error))
    }

    /// Closes a descriptor when nobody waits.
    pub fn close_later(&self, fd: OwnedFd) {
        self.used.replace(Some(fd));
    }

    /// Makes what is missing; when it cannot, whoever needs it next will be told.
    pub fn make(&self) {
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
