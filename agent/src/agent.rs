//! What all callers of this agent share.

use crate::args::Args;
use crate::gate::Gate;
use std::cell::Cell;
use std::rc::Rc;

pub struct Agent {
    pub args: Args,
    pub boot_id: String,
    /// Set by the host with system.thaw.
    pub epoch: Cell<u64>,
    pub gate: Rc<Gate>,
}

impl Agent {
    pub fn new(args: Args) -> Rc<Self> {
        Rc::new(Self { args, boot_id: random_id(), epoch: Cell::new(0), gate: Rc::default() })
    }
}

/// 128 random bits in hex.
fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer is valid for its length; a short read leaves zeros, which only makes the id less random.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
