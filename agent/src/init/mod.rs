//! The agent as the init process of a virtual machine: sets up the root filesystem and devices, starting from an initramfs.

mod block;
mod clock;
mod entropy;
mod filesystems;
mod instance;
mod modules;
mod ports;
mod root;
mod wake;

use crate::args::{Args, ChannelKind};
use crate::os::log::attempt;
use crate::os::{check, own};
use std::io;
use std::os::fd::AsRawFd;

pub use wake::{prepare, wake};

/// An error in the root filesystem ends the machine. Other errors are only logged.
pub fn boot(args: &Args) -> io::Result<()> {
    if !is_first() {
        return Err(io::Error::other("--init works only for PID 1 of a virtual machine"));
    }
    filesystems::mount_kernel()?;
    modules::load_all();
    root::enter()?;
    filesystems::mount_rest()?;
    attempt("bring up the loopback device", bring_up_loopback());
    wake::apply_instance();
    if let ChannelKind::Serial(path) = &args.channel {
        ports::wait_for(path)?;
    }
    Ok(())
}

/// Ends the machine, because the kernel panics when its first process exits. Requests a reboot, which hosts treat as the
/// end: Firecracker's machines cannot power off.
pub fn power_off() -> ! {
    if !is_first() {
        std::process::exit(1);
    }
    // SAFETY: plain system calls without memory.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_AUTOBOOT);
    }
    std::process::exit(1)
}

fn is_first() -> bool {
    std::process::id() == 1
}

fn bring_up_loopback() -> io::Result<()> {
    // SAFETY: the new descriptor has no other owner; ifreq is plain data that the ioctl reads.
    unsafe {
        let socket = own(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request)).map(drop)
    }
}
