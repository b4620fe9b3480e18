//! What all callers of this agent share.

use crate::args::Args;
use crate::gate::Gate;
use crate::init;
use crate::process::table::ProcessTable;
use std::cell::Cell;
use std::rc::Rc;

pub struct Agent {
    pub args: Args,
    pub boot_id: String,
    /// Set by the host with system.thaw.
    pub epoch: Cell<u64>,
    pub gate: Rc<Gate>,
    pub processes: ProcessTable,
    /// The limit on open files that processes get, when the agent has a higher one.
    pub open_files: Option<libc::rlimit>,
}

impl Agent {
    pub fn new(args: Args, open_files: Option<libc::rlimit>) -> Rc<Self> {
        Rc::new(Self {
            processes: ProcessTable::new(args.is_init),
            args,
            boot_id: random_id(),
            epoch: Cell::new(0),
            gate: Rc::default(),
            open_files,
        })
    }

    /// Nothing is sent from now on but what is asked for by name; a machine may stand still, and wake up as another.
    pub fn quiesce(&self) {
        if self.args.is_init {
            init::prepare();
            self.processes.settle();
        }
        self.gate.close();
    }

    /// Lets everything go on that `system.quiesce` stopped.
    pub fn thaw(&self) {
        if self.args.is_init && !self.gate.is_open() {
            init::wake();
        }
        self.gate.open();
    }
}

/// 128 random bits in hex.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer is valid for its length; a short read leaves zeros, which only makes the id less random.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
