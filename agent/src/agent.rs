//! What all callers of this agent share.

use crate::args::Args;
use crate::gate::Gate;
use crate::init;
use crate::process::table::ProcessTable;
use crate::process::{environment, language};
use std::cell::{Cell, RefCell};
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
    /// Looked for when a quiescence began, while nobody waited.
    languages: RefCell<Option<Vec<&'static str>>>,
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
            languages: RefCell::default(),
        })
    }

    /// The languages that code can be in here. Those of a quiescence are good for the hello that ends it.
    pub fn languages(&self) -> Vec<&'static str> {
        self.languages.take().unwrap_or_else(find_languages)
    }

    /// From now on programs may come and go before the next hello.
    pub fn forget_languages(&self) {
        self.languages.take();
    }

    /// Nothing is sent from now on but what is asked for by name; a machine may stand still, and wake up as another.
    pub fn quiesce(&self) {
        if self.args.is_init {
            init::prepare();
            self.processes.settle();
            self.languages.replace(Some(find_languages()));
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

fn find_languages() -> Vec<&'static str> {
    language::present(&environment::default_search_path())
}

/// 128 random bits in hex.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer is valid for its length; a short read leaves zeros, which only makes the id less random.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::Agent;
    use crate::args;

    #[test]
    fn languages_that_a_quiescence_has_found_are_told_once_and_not_after_a_thaw() {
        let agent = Agent::new(args::parse(std::iter::empty()).unwrap(), None);
        let found_at_quiescence = || agent.languages.replace(Some(vec!["cobol"]));
        found_at_quiescence();
        assert_eq!(agent.languages(), ["cobol"]);
        assert!(agent.languages().contains(&"sh"));
        found_at_quiescence();
        agent.forget_languages();
        assert!(agent.languages().contains(&"sh"));
    }
}
