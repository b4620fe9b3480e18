//! One process and what is known of it, until it is forgotten.

use super::exit_status::ExitStatus;
use super::output::Output;
use super::stdin::Stdin;
use super::terminal::{Size, Terminal};
use super::tree;
use crate::error::{AgentError, Code, Result};
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
    /// Let go when the process exits.
    terminal: RefCell<Option<Rc<Terminal>>>,
    /// Removed when the process ends.
    pub ephemeral_file: Option<PathBuf>,
    pub timer: RefCell<Option<AbortHandle>>,
    /// A SIGKILL sent by the agent is no sign of memory running out.
    pub was_killed: Cell<bool>,
    pub has_timed_out: Cell<bool>,
    /// Nobody will ask for its status.
    pub is_abandoned: Cell<bool>,
    exit: Cell<Option<(ExitStatus, Duration)>>,
    exited: Notify,
}

/// What a new process is made of.
pub struct Parts {
    pub id: String,
    pub pid: i32,
    pub argv: Vec<String>,
    pub cwd: String,
    pub user: String,
    pub output: Rc<Output>,
    pub stdin: Stdin,
    pub terminal: Option<Rc<Terminal>>,
    pub ephemeral_file: Option<PathBuf>,
}

impl Process {
    pub fn new(parts: Parts) -> Rc<Self> {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Rc::new(Self {
            id: parts.id,
            pid: parts.pid,
            argv: parts.argv,
            cwd: parts.cwd,
            user: parts.user,
            started_at_ms: since_epoch.as_millis() as u64,
            started: Instant::now(),
            output: parts.output,
            stdin: parts.stdin,
            has_terminal: parts.terminal.is_some(),
            terminal: RefCell::new(parts.terminal),
            ephemeral_file: parts.ephemeral_file,
            timer: RefCell::default(),
            was_killed: Cell::new(false),
            has_timed_out: Cell::new(false),
            is_abandoned: Cell::new(false),
            exit: Cell::new(None),
            exited: Notify::new(),
        })
    }

    /// None while it runs.
    pub fn exit(&self) -> Option<(ExitStatus, Duration)> {
        self.exit.get()
    }

    pub async fn wait(&self) -> (ExitStatus, Duration) {
        loop {
            let exited = self.exited.notified();
            if let Some(exit) = self.exit.get() {
                return exit;
            }
            exited.await;
        }
    }

    /// Its status has been collected by the reaper.
    pub fn finish(&self, status: ExitStatus) {
        if let Some(timer) = self.timer.borrow_mut().take() {
            timer.abort();
        }
        if let Some(terminal) = self.terminal.take() {
            terminal.release();
        }
        self.stdin.shut();
        self.output.finish();
        if let Some(path) = &self.ephemeral_file {
            // The process may have removed it itself.
            let _ = std::fs::remove_file(path);
        }
        self.exit.set(Some((status, self.started.elapsed())));
        self.exited.notify_waiters();
    }

    fn check_running(&self, tried: &str) -> Result<()> {
        if self.exit.get().is_none() {
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
        if unsafe { libc::kill(self.pid, signal) } < 0 {
            return Err(AgentError::io("signal", &self.id, &std::io::Error::last_os_error()));
        }
        Ok(())
    }

    /// Also reaches what an exited process has left behind.
    pub fn signal_tree(&self, signal: i32) {
        self.note_kill(signal);
        tree::signal(&tree::Root { mark: &self.id, pid: self.pid, has_exited: self.exit.get().is_some() }, signal);
    }

    fn note_kill(&self, signal: i32) {
        if signal == libc::SIGKILL {
            self.was_killed.set(true);
        }
    }
}
