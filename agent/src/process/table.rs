//! Every process that runs or whose status has not been collected.

use super::exit_status::ExitStatus;
use super::memory_kills::MemoryKills;
use super::output::Output;
use super::process::Process;
use super::spare_pipes::SparePipes;
use crate::error::{AgentError, Code, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Exited processes whose status nobody has collected; the oldest go first.
const MAX_EXITED: usize = 1024;
/// Exited processes whose output stays in memory.
const MAX_UNSETTLED: usize = 16;
/// With `MAX_EXITED`, as many as `hello` can tell of in one line.
const MAX_RUNNING: usize = 1024;

pub struct ProcessTable {
    by_id: RefCell<BTreeMap<String, Rc<Process>>>,
    running: RefCell<BTreeMap<i32, Rc<Process>>>,
    exited: RefCell<VecDeque<String>>,
    memory_kills: MemoryKills,
    pub spare_pipes: SparePipes,
}

impl ProcessTable {
    /// `is_machine` where the kernel runs nothing else.
    pub fn new(is_machine: bool) -> Self {
        Self {
            by_id: RefCell::default(),
            running: RefCell::default(),
            exited: RefCell::default(),
            memory_kills: MemoryKills::new(is_machine),
            spare_pipes: SparePipes::default(),
        }
    }

    pub fn get(&self, id: &str) -> Result<Rc<Process>> {
        self.by_id.borrow().get(id).cloned().ok_or_else(|| {
            AgentError::new(Code::NotFound, "no_such_process", format!("there is no process {id:?}"))
                .hint("process.list names those there are")
        })
    }

    /// In the order they were started.
    pub fn all(&self) -> Vec<Rc<Process>> {
        let mut processes: Vec<_> = self.by_id.borrow().values().cloned().collect();
        processes.sort_by_key(|process| process.started);
        processes
    }

    /// Whether a process named `id` may be started now.
    pub fn check_new(&self, id: &str) -> Result<()> {
        if self.by_id.borrow().contains_key(id) {
            let message = format!("there is a process {id:?} already");
            return Err(AgentError::new(Code::AlreadyExists, "process_exists", message));
        }
        if self.running.borrow().len() >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} processes started by callers are running");
            return Err(AgentError::new(Code::ResourceExhausted, "process_limit", message));
        }
        self.memory_kills.forget_earlier();
        Ok(())
    }

    /// Before everything stands still: what goes on afterwards begins with a process, and has no time to look around.
    pub fn settle(&self) {
        self.memory_kills.any_new();
    }

    pub fn insert(&self, process: Rc<Process>) {
        self.running.borrow_mut().insert(process.pid, Rc::clone(&process));
        self.by_id.borrow_mut().insert(process.id.clone(), process);
    }

    /// A child has been reaped; orphans are nobody's. Its output is to be released once its end has been told.
    pub fn exited(&self, pid: i32, wait_status: i32) -> Option<Rc<Output>> {
        let process = self.running.borrow_mut().remove(&pid)?;
        let mut status = ExitStatus { wait_status, timed_out: false, out_of_memory: false };
        if status.signal() == Some(libc::SIGKILL) {
            status.timed_out = process.has_timed_out.get();
            status.out_of_memory = !process.was_killed.get() && self.memory_kills.any_new();
        }
        process.finish(status);
        if process.is_abandoned.get() {
            self.remove(&process.id);
        } else {
            self.exited.borrow_mut().push_back(process.id.clone());
            self.settle_older();
            self.drop_oldest();
        }
        Some(Rc::clone(&process.output))
    }

    /// Statuses that nobody collects must not pile up in memory with all their output.
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
                .hint("end it with process.signal and wait for it first"));
        }
        self.exited.borrow_mut().retain(|exited| exited != id);
        self.remove(id);
        Ok(())
    }

    /// Kills what still runs of it, and forgets it once it has exited.
    pub fn abandon(&self, process: &Process) {
        if process.exit().is_some() {
            let _ = self.forget(&process.id);
        } else {
            process.is_abandoned.set(true);
            process.signal_tree(libc::SIGKILL);
        }
    }
}
