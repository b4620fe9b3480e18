//! A new process's three descriptors, and the agent's ends of them.

use super::pipe::{self, Pipe};
use super::segments::Source;
use super::stdin::Stdin;
use super::terminal::{Size, Terminal};
use crate::descriptor;
use crate::error::{AgentError, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The agent's own standard input is /dev/null, whatever its channel is.
const NULL: RawFd = 0;

pub struct Stdio {
    child: [RawFd; 3],
    /// The child's ends, closed here once it has them.
    given: Vec<OwnedFd>,
    kept: Kept,
}

enum Kept {
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd },
    Terminal(Terminal),
}

/// The agent's ends, on its event loop.
pub struct Ours {
    pub pipes: Vec<Rc<Pipe>>,
    pub stdin: Stdin,
    pub terminal: Option<Rc<Terminal>>,
}

impl Stdio {
    pub fn open(pty: Option<Size>, has_stdin: bool, owner: Option<u32>) -> Result<Self> {
        if let Some(size) = pty {
            let terminal = Terminal::open(size, owner)?;
            return Ok(Self { child: [terminal.slave(); 3], given: Vec::new(), kept: Kept::Terminal(terminal) });
        }
        let (stdout, stdout_end) = pair()?;
        let (stderr, stderr_end) = pair()?;
        let mut child = [NULL, stdout_end.as_raw_fd(), stderr_end.as_raw_fd()];
        let mut given = vec![stdout_end, stderr_end];
        let mut stdin = None;
        if has_stdin {
            let (stdin_end, ours) = pair()?;
            child[0] = stdin_end.as_raw_fd();
            given.push(stdin_end);
            stdin = Some(ours);
        }
        Ok(Self { child, given, kept: Kept::Pipes { stdin, stdout, stderr } })
    }

    pub fn child(&self) -> [RawFd; 3] {
        self.child
    }

    /// Closes the child's ends and takes ours to the event loop: work that is done while the process starts to run.
    pub fn into_ours(self) -> Result<Ours> {
        drop(self.given);
        match self.kept {
            Kept::Pipes { stdin, stdout, stderr } => {
                let pipe = |source, fd| Ok(Pipe::new(source, Rc::new(watch(fd, Interest::READABLE)?)));
                Ok(Ours {
                    pipes: vec![pipe(Source::Stdout, stdout)?, pipe(Source::Stderr, stderr)?],
                    stdin: match stdin {
                        Some(fd) => Stdin::pipe(watch(fd, Interest::WRITABLE)?),
                        None => Stdin::none(),
                    },
                    terminal: None,
                })
            }
            Kept::Terminal(terminal) => {
                let terminal = Rc::new(terminal);
                Ok(Ours {
                    pipes: vec![Pipe::new(Source::Pty, Rc::clone(&terminal.master))],
                    stdin: Stdin::terminal(Rc::clone(&terminal)),
                    terminal: Some(terminal),
                })
            }
        }
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd)> {
    pipe::pair().map_err(|error| AgentError::io("open", "a pipe", &error))
}

fn watch(fd: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>> {
    descriptor::watch(fd, interest).map_err(|error| AgentError::io("open", "a pipe", &error))
}
