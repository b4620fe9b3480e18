//! What the agent asks of the operating system.

pub mod allocator;
pub mod descriptor;
pub mod dir_changes;
pub mod log;
pub mod small_file;
pub mod user;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Turns the negative result of a system call into the error behind it.
pub fn check<N: Default + PartialOrd>(outcome: N) -> io::Result<N> {
    if outcome < N::default() { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

/// Takes the descriptor that a system call has just returned.
///
/// # Safety
/// A descriptor that is not negative is open and has no other owner.
pub unsafe fn own(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller guarantees it.
    check(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// 128 random bits in hex.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer is valid for its length; a short read leaves zeros, which only makes the id less random.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
