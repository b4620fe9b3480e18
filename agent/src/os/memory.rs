//! How much memory a kernel that serves only this sandbox has left.

use super::check;
use super::small_file::read_small_file;
use std::io;
use std::mem::MaybeUninit;

pub struct Memory {
    pub total_kib: u64,
    /// Memory that no file can be read into again: it becomes free only when a process frees it or ends.
    pub used_kib: u64,
    /// The agent's own included.
    pub tasks: u16,
}

impl Memory {
    pub fn free_kib(&self) -> u64 {
        self.total_kib.saturating_sub(self.used_kib)
    }

    /// Asks for the total first, because gVisor counts the parts with a scan. The total contains mapped files, so the parts
    /// decide when it says that nothing is free.
    pub fn read() -> io::Result<Self> {
        let mut info = MaybeUninit::<libc::sysinfo>::zeroed();
        // SAFETY: the structure is writable; the call fills plain data.
        let info = unsafe {
            check(libc::sysinfo(info.as_mut_ptr()))?;
            info.assume_init()
        };
        let kib = |units: u64| units.saturating_mul(u64::from(info.mem_unit)) / 1024;
        let (total_kib, free_kib) = (kib(info.totalram), kib(info.freeram));
        let used_kib = match free_kib {
            0 => field(&read_small_file("/proc/meminfo")?, "AnonPages:").ok_or(io::ErrorKind::InvalidData)?,
            _ => total_kib.saturating_sub(free_kib),
        };
        Ok(Self { total_kib, used_kib, tasks: info.procs })
    }
}

/// The number after a word at the start of a line.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        if words.next()? == name { words.next()?.parse().ok() } else { None }
    })
}
