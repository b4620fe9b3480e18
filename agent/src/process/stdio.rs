//! The standard descriptors of a new process and the agent's ends of them.

use super::pipe::Pipe;
use super::prepared_pipes::PreparedPipes;
use super::segments::Source;
use super::stdin::Stdin;
use super::terminal::{Size, Terminal};
use crate::error::{AgentError, Result};
use crate::os::descriptor;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use tokio::io::Interest;

/// The agent's own standard input, which is /dev/null on every kind of channel.
const NULL: RawFd = 0;

pub struct Stdio {
    pub child: [RawFd; 3],
    /// The child's end of its input. Close it after the start, so that the agent sees when the child closes its copy.
    pub input: Option<OwnedFd>,
    /// The child's ends of its output.
    pub outputs: Vec<OwnedFd>,
    pub pipes: Vec<Rc<Pipe>>,
    pub stdin: Stdin,
    pub terminal: Option<Rc<Terminal>>,
}

impl Stdio {
    pub fn terminal(size: Size, owner: Option<u32>) -> Result<Self> {
        let terminal = Rc::new(Terminal::open(size, owner)?);
        Ok(Self {
            child: [terminal.slave(); 3],
            input: None,
            outputs: Vec::new(),
            pipes: vec![Pipe::new(Source::Pty, Rc::clone(&terminal.master))],
            stdin: Stdin::terminal(Rc::clone(&terminal)),
            terminal: Some(terminal),
        })
    }

    pub fn pipes(pipes: &PreparedPipes, has_stdin: bool) -> Result<Self> {
        let [stdout, stderr] = pipes.outputs()?;
        let mut stdio = Self {
            child: [NULL, stdout.theirs.as_raw_fd(), stderr.theirs.as_raw_fd()],
            input: None,
            outputs: vec![stdout.theirs, stderr.theirs],
            pipes: vec![stdout.ours, stderr.ours],
            stdin: Stdin::none(),
            terminal: None,
        };
        if has_stdin {
            let (theirs, ours) = pipes.plain()?;
            let ours = descriptor::watch(ours, Interest::WRITABLE);
            stdio.stdin = Stdin::pipe(ours.map_err(|error| AgentError::io("open", "a pipe", &error))?);
            stdio.child[0] = theirs.as_raw_fd();
            stdio.input = Some(theirs);
        }
        Ok(stdio)
    }
}
