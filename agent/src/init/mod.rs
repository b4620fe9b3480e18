//! The agent as the first process of a virtual machine: from a kernel with an initramfs to a root filesystem that processes can
//! run in. What the kernel's own init would do, and nothing else.

mod block;
mod clock;
mod entropy;
mod filesystems;
mod instance;
mod loopback;
mod modules;
mod ports;
mod root;
mod wake;

use crate::args::{Args, ChannelKind};
use crate::log;
use std::fmt::Display;
use std::io;
use std::path::Path;

pub use wake::{prepare, wake};

/// Modules of the initramfs, in the order of their names.
const MODULES: &str = "/modules";

/// A machine whose root cannot be put together is of no use: what fails there ends it. The rest is said and left.
pub fn boot(args: &Args) -> io::Result<()> {
    if !is_first() {
        return Err(io::Error::other("--init is for the first process of a machine"));
    }
    filesystems::mount_kernel()?;
    modules::load_all(Path::new(MODULES));
    root::enter()?;
    filesystems::mount_rest()?;
    attempt("bring up the loopback device", loopback::bring_up());
    wake::apply_instance();
    if let ChannelKind::Serial(path) = &args.channel {
        ports::wait_for(path)?;
    }
    Ok(())
}

/// Ends the machine; a first process that just exits would make the kernel panic.
pub fn power_off() -> ! {
    if !is_first() {
        std::process::exit(1);
    }
    // SAFETY: plain system calls without memory.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    std::process::exit(1)
}

fn is_first() -> bool {
    std::process::id() == 1
}

fn attempt<T>(what: impl Display, outcome: io::Result<T>) -> Option<T> {
    outcome.inspect_err(|error| log::warn(format_args!("cannot {what}: {error}"))).ok()
}
