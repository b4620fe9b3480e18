//! The channel of a program that serves its stdin and stdout.

use super::TIMEOUT;
use super::agent::stop;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Ends with its program.
pub struct Pipes {
    pub child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Pipes {
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("stdout is piped"));
        Self { child, input, output }
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }
}

impl Read for Pipes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut watched = libc::pollfd { fd: self.output.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one writable structure.
        let ready = unsafe { libc::poll(&mut watched, 1, TIMEOUT.as_millis() as i32) };
        if ready > 0 { self.output.read(buffer) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl Write for Pipes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().expect("input is open").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.close_input();
        stop(&mut self.child);
    }
}
