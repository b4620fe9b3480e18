//! All processes that run, or whose status no caller has collected.

use super::exit_status::ExitStatus;
use super::oom_kills::OomKills;
use super::output::Output;
use super::prepared_pipes::PreparedPipes;
use super::process::Process;
use super::tree;
use crate::error::{AgentError, Code, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use tokio::sync::Notify;

/// The most exited processes whose status no caller has collected. The table drops the oldest first.
const MAX_EXITED: usize = 1024;
/// Exited processes whose output stays in memory.
const MAX_UNSETTLED: usize = 16;
/// Together with `MAX_EXITED`, as many as `hello` can list in one line.
const MAX_RUNNING: usize = 1024;

pub struct ProcessTable {
    by_id: RefCell<BTreeMap<String, Rc<Process>>>,
    running: RefCell<BTreeMap<i32, Rc<Process>>>,
    exited: RefCell<VecDeque<String>>,
    oom_kills: OomKills,
    /// Notified of each new process.
    pub started: Notify,
    /// Wakes the tasks that wait for the next new process.
    pub any_started: Notify,
    pub prepared_pipes: PreparedPipes,
    /// The limit on open files for processes, if the agent raised its own.
    pub open_files: Option<libc::rlimit>,
}

impl ProcessTable {
    /// `is_machine` says that the kernel serves only this sandbox.
    pub fn new(is_machine: bool, open_files: Option<libc::rlimit>) -> Self {
        Self {
            by_id: RefCell::default(),
            running: RefCell::default(),
            exited: RefCell::default(),
            oom_kills: OomKills::new(is_machine),
            started: Notify::new(),
            any_started: Notify::new(),
            prepared_pipes: PreparedPipes::default(),
            open_files,
        }
    }

    pub fn get(&self, id: &str) -> Result<Rc<Process>> {
        self.by_id.borrow().get(id).cloned().ok_or_else(|| {
            AgentError::new(Code::NotFound, "no_such_process", format!("process {id:?} not found"))
                .hint("process.list lists the processes of this sandbox")
        })
    }

    /// In the order of their start.
    pub fn all(&self) -> Vec<Rc<Process>> {
        let mut processes: Vec<_> = self.by_id.borrow().values().cloned().collect();
        processes.sort_by_key(|process| process.started);
        processes
    }

    /// Whether a caller may start a process named `id` now.
    pub fn check_new(&self, id: &str) -> Result<()> {
        if self.by_id.borrow().contains_key(id) {
            let message = format!("process {id:?} already exists");
            return Err(AgentError::new(Code::AlreadyExists, "process_exists", message));
        }
        if self.running.borrow().len() >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} processes are running, which is the limit: wait for one to exit");
            return Err(AgentError::new(Code::ResourceExhausted, "process_limit", message));
        }
        self.oom_kills.forget_earlier();
        Ok(())
    }

    /// Reads the kernel's counter at quiesce: the first process after a restore must not wait for that.
    pub fn settle(&self) {
        self.oom_kills.any_new();
    }

    pub fn is_idle(&self) -> bool {
        self.running.borrow().is_empty()
    }

    pub fn insert(&self, process: Rc<Process>) {
        self.running.borrow_mut().insert(process.pid, Rc::clone(&process));
        self.by_id.borrow_mut().insert(process.id.clone(), process);
        self.started.notify_one();
        self.any_started.notify_waiters();
    }

    /// Call it before processes continue that were stopped for a lack of memory: those that the host has killed end then.
    pub fn note_shortage(&self) {
        self.oom_kills.note_shortage();
    }

    /// The agent is about to kill this process, of any command, because memory has run out.
    pub fn note_memory_kill(&self, pid: i32) {
        self.oom_kills.note_shortage();
        let running: Vec<_> = self.running.borrow().values().cloned().collect();
        let roots: Vec<_> = running.iter().map(|process| process.root()).collect();
        let owners = tree::owners(pid, &roots);
        for process in running.iter().filter(|process| owners.contains(&process.id.as_str())) {
            process.progress.ran_out_of_memory.set(true);
        }
    }

    /// The reaper has collected a child; None for an orphan. Release the output once the waiting callers have their answer.
    pub fn exited(&self, pid: i32, wait_status: i32) -> Option<Rc<Output>> {
        let process = self.running.borrow_mut().remove(&pid)?;
        let mut status = ExitStatus { wait_status, timed_out: false, out_of_memory: false };
        if status.signal() == Some(libc::SIGKILL) {
            status.timed_out = process.progress.has_timed_out.get();
        }
        status.out_of_memory = process.progress.ran_out_of_memory.get()
            || (!process.progress.was_killed.get() && self.oom_kills.explain(status.shell_code()));
        process.finish(status);
        if process.progress.is_abandoned.get() {
            self.remove(&process.id);
        } else {
            self.exited.borrow_mut().push_back(process.id.clone());
            self.settle_older();
            self.drop_oldest();
        }
        Some(Rc::clone(&process.output))
    }

    /// The output of processes whose status no caller collects must not fill the memory.
    fn settle_older(&self) {
        let exited = self.exited.borrow();
        let older = exited.len().checked_sub(1 + MAX_UNSETTLED).and_then(|at| exited.get(at));
        if let Some(process) = older.and_then(|id| self.by_id.borrow().get(id).cloned()) {
            process.output.settle();
        }
    }

    fn drop_oldest(&self) {
        while self.exited.borrow().len() > MAX_EXITED {
            let Some(oldest) = self.exited.borrow_mut().pop_front() else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&self, id: &str) {
        if let Some(process) = self.by_id.borrow_mut().remove(id) {
            process.output.discard();
        }
    }

    pub fn forget(&self, id: &str) -> Result<()> {
        if self.get(id)?.exit().is_none() {
            let message = format!("cannot forget process {id:?}: it is still running");
            return Err(AgentError::new(Code::FailedPrecondition, "still_running", message)
                .hint("stop it with process.signal and wait for its exit first"));
        }
        self.exited.borrow_mut().retain(|exited| exited != id);
        self.remove(id);
        Ok(())
    }

    /// Kills its process tree and forgets it once it has exited.
    pub fn abandon(&self, process: &Process) {
        if process.exit().is_some() {
            let _ = self.forget(&process.id);
        } else {
            process.progress.is_abandoned.set(true);
            process.signal_tree(libc::SIGKILL);
        }
    }
}
