//! How a process exited.

use super::signal;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitStatus {
    /// In the encoding of waitpid.
    pub wait_status: i32,
    pub timed_out: bool,
    pub out_of_memory: bool,
}

impl ExitStatus {
    /// None when a signal ended the process.
    pub fn exit_code(&self) -> Option<i32> {
        libc::WIFEXITED(self.wait_status).then(|| libc::WEXITSTATUS(self.wait_status))
    }

    pub fn signal(&self) -> Option<i32> {
        libc::WIFSIGNALED(self.wait_status).then(|| libc::WTERMSIG(self.wait_status))
    }

    /// The exit code of a shell: 128 + the signal's number when a signal ended the process.
    pub fn shell_code(&self) -> i32 {
        self.exit_code().unwrap_or_else(|| 128 + self.signal().unwrap_or(0))
    }

    pub fn signal_name(&self) -> Option<String> {
        self.signal().map(signal::name)
    }

    pub fn to_json(self) -> Value {
        json!({
            "exit_code": self.exit_code(),
            "signal": self.signal_name(),
            "timed_out": self.timed_out,
            "out_of_memory": self.out_of_memory,
        })
    }
}
