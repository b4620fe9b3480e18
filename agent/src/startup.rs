//! What the agent sets up before it serves callers.

use crate::args::{Args, Network};
use crate::os::log::attempt;
use crate::os::user::{self, User};
use crate::os::{allocator, capability, check, own};
use crate::redirect;
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

pub struct Startup {
    /// A signalfd for the signals that the agent acts on.
    pub signals: OwnedFd,
    /// The limit on open files for processes, if the agent raised its own.
    pub open_files: Option<libc::rlimit>,
}

pub fn prepare() -> io::Result<Startup> {
    allocator::keep_freed_memory();
    let is_init = std::process::id() == 1;
    reset_signals();
    let signals = take_signals(is_init)?;
    // PID 1 gets orphans without being a subreaper. A kernel without close_range leaves the provider's descriptors as
    // they are.
    // SAFETY: plain system calls without memory.
    unsafe {
        if !is_init {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
        libc::umask(0o022);
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(Startup { signals, open_files: raise_open_files() })
}

/// Processes would inherit ignored signals. `take_signals` blocks SIGPIPE, which Rust ignores.
fn reset_signals() {
    // All zeros is the default disposition. The C library refuses to set two signals.
    let default = [0u64; 4];
    for signal in 1..=64 {
        // SAFETY: the kernel reads a zeroed sigaction, and refuses the signals that cannot be set.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &default, std::ptr::null_mut::<u64>(), size_of::<u64>())
        };
    }
}

/// Blocks all signals, so that none from inside ends the agent, and reads the important ones from a descriptor. The
/// kernel does not let a process block its own faults, which still end the agent.
fn take_signals(is_init: bool) -> io::Result<OwnedFd> {
    // SAFETY: signal sets are plain data; the new descriptor has no other owner.
    unsafe {
        // The C library would leave two signals out.
        let all = u64::MAX;
        let none = std::ptr::null_mut::<u64>();
        check(libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &all, none, size_of::<u64>()))?;
        let mut read: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut read);
        // The host stops PID 1 with SIGTERM. A child of another program also obeys SIGINT and SIGHUP.
        let of_child: &[i32] = if is_init { &[] } else { &[libc::SIGINT, libc::SIGHUP] };
        for signal in [&[libc::SIGCHLD, libc::SIGTERM], of_child].concat() {
            libc::sigaddset(&mut read, signal);
        }
        own(libc::signalfd(-1, &read, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// A thousand processes need a few thousand pipes.
fn raise_open_files() -> Option<libc::rlimit> {
    // SAFETY: both calls work on a plain struct.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) < 0 || limit.rlim_cur >= limit.rlim_max {
            return None;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
        (libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0).then_some(limit)
    }
}

/// A failure of the redirection is logged: without it a sandbox only has no network, because it has no device either. In
/// a container the agent has the right to change the network only for this; in a machine of its own root keeps it.
pub fn join_network(args: &Args) -> io::Result<()> {
    if args.network == Network::Private {
        attempt("redirect the network to the agent", redirect::set_up());
        if !args.is_init {
            capability::drop_network_administration()?;
        }
    }
    if args.network != Network::Shared {
        attempt("set the name server", redirect::set_name_server());
    }
    Ok(())
}

/// Makes fresh volumes, which belong to root, writable for all users inside. A failure is logged: the program that needs
/// the volume reports it.
pub fn open_dirs(args: &Args) {
    for dir in &args.open_dirs {
        attempt(
            format_args!("make {} writable for all users", dir.display()),
            open_dir(dir, &user::default_user(args)),
        );
    }
}

/// Changes the directory itself, not its contents.
fn open_dir(path: &Path, owner: &User) -> io::Result<()> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let dir = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    fchown(&dir, Some(owner.uid), Some(owner.gid))?;
    dir.set_permissions(Permissions::from_mode(0o777))
}
