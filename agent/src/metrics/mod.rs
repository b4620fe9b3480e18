//! What the sandbox uses.
//!
//! A container without a kernel of its own sees the host in /proc, and itself in its cgroup; gVisor and a VM show
//! themselves in /proc and have no cgroup limits inside. So the cgroup counts where it has the figure, /proc elsewhere.

mod cpu;
mod memory;

use crate::files::small_file::read_small_file;
use serde::Serialize;
use std::io;
use std::mem::MaybeUninit;

/// The largest integer every JSON reader keeps exact; file systems without a limit report more.
const MAX_EXACT: u64 = (1 << 53) - 1;

#[derive(Debug, Serialize)]
pub struct Metrics {
    cpu_ms: f64,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
    processes: u64,
    uptime_ms: f64,
}

impl Metrics {
    pub fn read() -> io::Result<Self> {
        let memory = memory::read()?;
        let (disk_used_bytes, disk_total_bytes) = disk()?;
        Ok(Self {
            cpu_ms: cpu::used_ms()?,
            memory_used_bytes: memory.used_bytes,
            memory_total_bytes: memory.total_bytes,
            disk_used_bytes,
            disk_total_bytes,
            processes: processes()?,
            uptime_ms: uptime_ms()?,
        })
    }
}

/// Used and total bytes of the root file system.
fn disk() -> io::Result<(u64, u64)> {
    let mut figures = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path is NUL-terminated and the structure is writable.
    if unsafe { libc::statvfs(c"/".as_ptr(), figures.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs is plain data, filled by the call.
    let figures = unsafe { figures.assume_init() };
    let bytes = |blocks: u64| blocks.saturating_mul(figures.f_frsize).min(MAX_EXACT);
    Ok((bytes(figures.f_blocks.saturating_sub(figures.f_bfree)), bytes(figures.f_blocks)))
}

fn processes() -> io::Result<u64> {
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let entries = std::fs::read_dir("/proc")?;
    Ok(entries.filter(|entry| entry.as_ref().is_ok_and(|entry| is_process(&entry.file_name()))).count() as u64)
}

fn uptime_ms() -> io::Result<f64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(now.tv_sec as f64 * 1e3 + (now.tv_nsec / 1000) as f64 / 1e3)
}

/// A file that holds one number; None when it is missing or says "max".
fn read_number(path: &str) -> Option<u64> {
    read_small_file(path).ok()?.trim().parse().ok()
}

/// The number after a word at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        if words.next()? == name { words.next()?.parse().ok() } else { None }
    })
}
