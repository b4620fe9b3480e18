//! What the agent sets up for itself before it serves anybody.

use crate::memory;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub struct Startup {
    /// A signalfd of the signals the agent acts on.
    pub signals: OwnedFd,
    /// The limit on open files that processes get back, when the agent raised it for itself.
    pub open_files: Option<libc::rlimit>,
}

pub fn prepare() -> io::Result<Startup> {
    memory::keep_freed();
    let is_init = std::process::id() == 1;
    reset_signals();
    let signals = take_signals(is_init)?;
    // SAFETY: plain system calls without memory. Orphans come to PID 1 by themselves; kernels without close_range leave
    // the provider's descriptors as the provider made them.
    unsafe {
        if !is_init {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
        libc::umask(0o022);
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(Startup { signals, open_files: raise_open_files() })
}

/// Ignored signals would be ignored by every process too. SIGPIPE, which Rust ignores, is blocked below instead.
fn reset_signals() {
    // All zeros is the default disposition; the C library would keep two signals for itself.
    let default = [0u64; 4];
    for signal in 1..=64 {
        // SAFETY: the kernel reads a zeroed sigaction, and refuses the signals that cannot be set.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &default, std::ptr::null_mut::<u64>(), size_of::<u64>())
        };
    }
}

/// Blocks everything, so that no signal from inside ends the agent, and reads what matters from a descriptor. A fault
/// of the agent's own ends it all the same: the kernel does not let those be blocked.
fn take_signals(is_init: bool) -> io::Result<OwnedFd> {
    // SAFETY: signal sets are plain data; the new descriptor is ours.
    unsafe {
        // By system call, since the C library would leave two signals out.
        let all = u64::MAX;
        let none = std::ptr::null_mut::<u64>();
        if libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &all, none, size_of::<u64>()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut read: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut read);
        libc::sigaddset(&mut read, libc::SIGCHLD);
        // PID 1 ends when its host says so; anybody's child ends when it is told to.
        libc::sigaddset(&mut read, libc::SIGTERM);
        for signal in [libc::SIGINT, libc::SIGHUP] {
            if !is_init {
                libc::sigaddset(&mut read, signal);
            }
        }
        let fd = libc::signalfd(-1, &read, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// A thousand processes have a few thousand pipes.
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
