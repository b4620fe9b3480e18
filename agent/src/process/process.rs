//! One process and its state, kept until a caller forgets it.

use super::exit_status::ExitStatus;
use super::output::Output;
use super::stdin::Stdin;
use super::terminal::{Size, Terminal};
use super::tree;
use crate::error::{AgentError, Code, Result};
use crate::os::check;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

pub struct Process {
    pub id: String,
    pub pid: i32,
    pub argv: Vec<String>,
    pub cwd: String,
    pub user: String,
    pub started_at_ms: u64,
    pub started: Instant,
    pub output: Rc<Output>,
    pub stdin: Stdin,
    pub has_terminal: bool,
    /// Released when the process exits.
    pub terminal: RefCell<Option<Rc<Terminal>>>,
    /// Removed when the process exits.
    pub ephemeral_file: Option<PathBuf>,
    pub progress: Progress,
}

/// What changes while a process runs.
#[derive(Default)]
pub struct Progress {
    pub timer: RefCell<Option<AbortHandle>>,
    /// Set when the agent sent the SIGKILL, which then does not mean that memory ran out.
    pub was_killed: Cell<bool>,
    pub has_timed_out: Cell<bool>,
    /// The agent killed a process of its tree because memory had run out.
    pub ran_out_of_memory: Cell<bool>,
    /// The process is forgotten as soon as it exits.
    pub is_abandoned: Cell<bool>,
    exit: Cell<Option<(ExitStatus, Duration)>>,
    exited: Notify,
}

impl Process {
    /// None while it runs.
    pub fn exit(&self) -> Option<(ExitStatus, Duration)> {
        self.progress.exit.get()
    }

    pub async fn wait(&self) -> (ExitStatus, Duration) {
        loop {
            let exited = self.progress.exited.notified();
            if let Some(exit) = self.exit() {
                return exit;
            }
            exited.await;
        }
    }

    /// The reaper has collected its status.
    pub fn finish(&self, status: ExitStatus) {
        if let Some(timer) = self.progress.timer.borrow_mut().take() {
            timer.abort();
        }
        if let Some(terminal) = self.terminal.take() {
            terminal.release();
        }
        self.stdin.shut();
        self.output.finish();
        if let Some(path) = &self.ephemeral_file {
            // Fails when the process has removed the file itself.
            let _ = std::fs::remove_file(path);
        }
        self.progress.exit.set(Some((status, self.started.elapsed())));
        self.progress.exited.notify_waiters();
    }

    fn check_running(&self, tried: &str) -> Result<()> {
        if self.exit().is_none() {
            return Ok(());
        }
        let message = format!("cannot {tried} process {:?}: it has exited", self.id);
        Err(AgentError::new(Code::FailedPrecondition, "not_running", message))
    }

    pub fn resize(&self, size: Size) -> Result<()> {
        self.check_running("resize")?;
        match &*self.terminal.borrow() {
            Some(terminal) => terminal.resize(size),
            None => {
                let message = format!("cannot resize process {:?}: it has no terminal", self.id);
                Err(AgentError::new(Code::FailedPrecondition, "no_terminal", message))
            }
        }
    }

    pub fn signal(&self, signal: i32) -> Result<()> {
        self.check_running("signal")?;
        self.note_kill(signal);
        // SAFETY: the pid is a child that has not been waited for, so it names no other process.
        let sent = check(unsafe { libc::kill(self.pid, signal) });
        sent.map(drop).map_err(|error| AgentError::io("signal", &self.id, &error))
    }

    /// Also reaches the descendants of a process that has exited.
    pub fn signal_tree(&self, signal: i32) {
        self.note_kill(signal);
        tree::signal(&self.root(), signal);
    }

    pub fn root(&self) -> tree::Root<'_> {
        tree::Root { id: &self.id, pid: self.pid, has_exited: self.exit().is_some() }
    }

    fn note_kill(&self, signal: i32) {
        if signal == libc::SIGKILL {
            self.progress.was_killed.set(true);
        }
    }
}
