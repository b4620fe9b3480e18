//! What the agent asks of the operating system.

pub mod allocator;
pub mod capability;
pub mod descriptor;
pub mod dir_changes;
pub mod inotify;
pub mod log;
pub mod memory;
pub mod real_ids;
pub mod small_file;
pub mod user;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

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

/// Appends at most `most` bytes. Returns their number, zero at the end.
pub fn read_into(fd: RawFd, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    bytes.reserve_exact(most);
    loop {
        // SAFETY: the spare capacity has room for `most` bytes.
        match check(unsafe { libc::read(fd, bytes.spare_capacity_mut().as_mut_ptr().cast(), most) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(size) => {
                // SAFETY: the kernel has just filled that many bytes.
                unsafe { bytes.set_len(bytes.len() + size as usize) };
                return Ok(size as usize);
            }
        }
    }
}

/// The time since boot, including suspension.
pub fn boottime() -> io::Result<Duration> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable.
    check(unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) })?;
    Ok(Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
}

pub fn count_processes() -> io::Result<u64> {
    let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let entries = std::fs::read_dir("/proc")?;
    Ok(entries.flatten().filter(|entry| is_process(&entry.file_name())).count() as u64)
}

/// 128 random bits in hex.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer is valid for its length; a short read leaves zeros, which only makes the id less random.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
