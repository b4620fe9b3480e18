//! A new process's three descriptors, and the agent's ends of them.

use super::pipe::{self, Pipe};
use super::segments::Source;
use super::stdin::Stdin;
use super::table::ProcessTable;
use super::terminal::{Size, Terminal};
use crate::descriptor;
use crate::error::{AgentError, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub struct Stdio {
    child: [RawFd; 3],
    /// The child's ends, closed here once it has them.
    given: Vec<OwnedFd>,
    pipes: Vec<Rc<Pipe>>,
    stdin: Stdin,
    terminal: Option<Rc<Terminal>>,
}

impl Stdio {
    pub fn open(table: &ProcessTable, pty: Option<Size>, has_stdin: bool, owner: Option<u32>) -> Result<Self> {
        match pty {
            Some(size) => Self::terminal(Terminal::open(size, owner)?),
            None => Self::pipes(if has_stdin { None } else { Some(table.null()?) }),
        }
    }

    fn terminal(terminal: Terminal) -> Result<Self> {
        let terminal = Rc::new(terminal);
        let slave = terminal.slave().unwrap_or(-1);
        Ok(Self {
            child: [slave; 3],
            given: Vec::new(),
            pipes: vec![Pipe::new(Source::Pty, Rc::clone(&terminal.master))],
            stdin: Stdin::terminal(Rc::clone(&terminal)),
            terminal: Some(terminal),
        })
    }

    fn pipes(null: Option<RawFd>) -> Result<Self> {
        let mut given = Vec::with_capacity(3);
        let (input, stdin) = match null {
            Some(null) => (null, Stdin::none()),
            None => {
                let (theirs, ours) = pair()?;
                given.push(theirs);
                (given[0].as_raw_fd(), Stdin::pipe(watch(ours, Interest::WRITABLE)?))
            }
        };
        let mut output = |source| -> Result<(RawFd, Rc<Pipe>)> {
            let (ours, theirs) = pair()?;
            let fd = theirs.as_raw_fd();
            given.push(theirs);
            Ok((fd, Pipe::new(source, Rc::new(watch(ours, Interest::READABLE)?))))
        };
        let (stdout, stdout_pipe) = output(Source::Stdout)?;
        let (stderr, stderr_pipe) = output(Source::Stderr)?;
        Ok(Self { child: [input, stdout, stderr], given, pipes: vec![stdout_pipe, stderr_pipe], stdin, terminal: None })
    }

    pub fn child(&self) -> [RawFd; 3] {
        self.child
    }

    /// Closes the child's ends.
    pub fn into_ours(self) -> (Vec<Rc<Pipe>>, Stdin, Option<Rc<Terminal>>) {
        drop(self.given);
        (self.pipes, self.stdin, self.terminal)
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd)> {
    pipe::pair().map_err(|error| AgentError::io("open", "a pipe", &error))
}

fn watch(fd: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>> {
    descriptor::watch(fd, interest).map_err(|error| AgentError::io("open", "a pipe", &error))
}
