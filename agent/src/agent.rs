//! The state that all callers of this agent share.

use crate::args::Args;
use crate::calls::quiesce_gate::QuiesceGate;
use crate::init;
use crate::net::guest_network::GuestNetwork;
use crate::os::random_id;
use crate::process::table::ProcessTable;
use crate::process::{environment, language};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub struct Agent {
    pub args: Args,
    pub boot_id: String,
    /// The host sets it with system.thaw.
    pub epoch: Cell<u64>,
    pub gate: Rc<QuiesceGate>,
    pub network: Rc<GuestNetwork>,
    pub processes: Rc<ProcessTable>,
    /// Searched for at quiesce, when no caller waits.
    languages: RefCell<Option<Vec<&'static str>>>,
}

impl Agent {
    pub fn new(args: Args, open_files: Option<libc::rlimit>) -> Rc<Self> {
        Rc::new(Self {
            processes: Rc::new(ProcessTable::new(args.is_init, open_files)),
            args,
            boot_id: random_id(),
            epoch: Cell::new(0),
            gate: Rc::default(),
            network: Rc::default(),
            languages: RefCell::default(),
        })
    }

    /// The languages with an interpreter. The hello that ends a quiescence uses those found at its beginning.
    pub fn languages(&self) -> Vec<&'static str> {
        self.languages.take().unwrap_or_else(find_languages)
    }

    /// Prepares for a checkpoint: from now on the agent sends only what a caller asks for by name.
    pub fn quiesce(&self) {
        if self.args.is_init {
            init::prepare();
            self.processes.settle();
            self.languages.replace(Some(find_languages()));
        }
        self.gate.close();
    }

    /// Ends a quiescence.
    pub fn thaw(&self) {
        if self.args.is_init && !self.gate.is_open() {
            init::wake();
        }
        self.gate.open();
    }

    /// Programs may come and go from now on, so the next hello searches again.
    pub fn forget_languages(&self) {
        self.languages.take();
    }
}

fn find_languages() -> Vec<&'static str> {
    language::present(&environment::default_search_path())
}

#[cfg(test)]
mod tests {
    use super::Agent;
    use crate::args;

    #[test]
    fn reports_the_languages_found_at_quiesce_once_and_searches_again_after_a_thaw() {
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
