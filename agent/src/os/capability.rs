//! Capabilities that the agent gives up before it runs any process.

use super::check;
use std::io;

/// Of `capget` and `capset`, for 64 capabilities in two halves.
const VERSION_3: u32 = 0x2008_0522;
const SETPCAP: u32 = 8;
const NET_ADMIN: u32 = 12;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Removes the right to change the network, and the right to drop rights, from every set: no process gets them back, not
/// even root's. Does nothing if the agent does not have them.
pub fn drop_network_administration() -> io::Result<()> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: the structures have the layout of version 3, and zero means this process.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) })?;
    let [low, _] = &mut halves;
    if low.permitted & (1 << NET_ADMIN) == 0 {
        return Ok(());
    }
    for capability in [NET_ADMIN, SETPCAP] {
        // SAFETY: changes only this process; no memory is involved.
        check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) })?;
        for set in [&mut low.effective, &mut low.permitted, &mut low.inheritable] {
            *set &= !(1 << capability);
        }
    }
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) }).map(drop)
}
