//! `system.metrics`: the resources that the sandbox uses.
//!
//! A container shares the host's kernel: /proc describes the host, and the cgroup describes the container. gVisor and
//! virtual machines describe themselves in /proc and have no cgroup limits inside. So a figure comes from the cgroup where
//! it has one, otherwise from /proc.

use crate::error::{AgentError, Result};
use crate::os::memory::field;
use crate::os::small_file::read_small_file;
use crate::os::{boottime, check, count_processes};
use serde::Serialize;
use serde_json::{Value, json};
use std::io;
use std::mem::MaybeUninit;

/// The largest integer that every JSON reader keeps exact. A filesystem without a limit reports more.
const MAX_EXACT: u64 = (1 << 53) - 1;

#[derive(Serialize)]
struct Metrics {
    cpu_ms: f64,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
    processes: u64,
    uptime_ms: f64,
}

pub fn run() -> Result<Value> {
    let metrics = read().map_err(|error| AgentError::io("read", "the system's counters", &error))?;
    Ok(json!(metrics))
}

fn read() -> io::Result<Metrics> {
    let memory = memory()?;
    let (disk_used_bytes, disk_total_bytes) = disk()?;
    Ok(Metrics {
        cpu_ms: cpu_ms()?,
        memory_used_bytes: memory.used_bytes,
        memory_total_bytes: memory.total_bytes,
        disk_used_bytes,
        disk_total_bytes,
        processes: count_processes()?,
        uptime_ms: boottime()?.as_micros() as f64 / 1e3,
    })
}

/// CPU time of all processes in the sandbox, including those that have exited.
fn cpu_ms() -> io::Result<f64> {
    let unified = read_small_file("/sys/fs/cgroup/cpu.stat").ok().and_then(|text| field(&text, "usage_usec"));
    if let Some(microseconds) = unified {
        return Ok(microseconds as f64 / 1e3);
    }
    if let Some(nanoseconds) = read_number("/sys/fs/cgroup/cpuacct/cpuacct.usage") {
        return Ok((nanoseconds / 1000) as f64 / 1e3);
    }
    // SAFETY: only reads a constant of the system.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    let ticks = busy_ticks(&read_small_file("/proc/stat")?).ok_or(io::ErrorKind::InvalidData)?;
    Ok(ticks as f64 * 1e3 / ticks_per_second)
}

/// The sum of user, nice, system, irq and softirq in the first line.
fn busy_ticks(stat: &str) -> Option<u64> {
    let mut words = stat.lines().next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else { return None };
    Some(user + nice + system + irq + softirq)
}

/// Memory that the sandbox could not free at once, and its limit.
#[derive(Debug, PartialEq)]
struct Memory {
    used_bytes: u64,
    total_bytes: u64,
}

/// The names of the figures in one version of cgroups.
struct Cgroup {
    usage: &'static str,
    limit: &'static str,
    stat: &'static str,
    /// Page cache that is not in use. The kernel frees it when memory is short, so it does not count as used.
    idle_cache: &'static str,
}

const CGROUPS: [Cgroup; 2] = [
    Cgroup {
        usage: "/sys/fs/cgroup/memory.current",
        limit: "/sys/fs/cgroup/memory.max",
        stat: "/sys/fs/cgroup/memory.stat",
        idle_cache: "inactive_file",
    },
    Cgroup {
        usage: "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        limit: "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        stat: "/sys/fs/cgroup/memory/memory.stat",
        idle_cache: "total_inactive_file",
    },
];

fn memory() -> io::Result<Memory> {
    let machine = of_machine(&read_small_file("/proc/meminfo")?).ok_or(io::ErrorKind::InvalidData)?;
    // A limit at or above the machine's memory has no effect, and such a cgroup may count nothing.
    let limited = CGROUPS.iter().find_map(|group| {
        let limit = read_number(group.limit).filter(|limit| *limit < machine.total_bytes)?;
        let idle_cache = field(&read_small_file(group.stat).ok()?, group.idle_cache).unwrap_or(0);
        let used_bytes = read_number(group.usage)?.saturating_sub(idle_cache);
        Some(Memory { used_bytes, total_bytes: limit })
    });
    Ok(limited.unwrap_or(machine))
}

fn of_machine(meminfo: &str) -> Option<Memory> {
    let bytes = |name| field(meminfo, name).map(|kibibytes| kibibytes * 1024);
    let total_bytes = bytes("MemTotal:")?;
    let available = bytes("MemAvailable:").or_else(|| bytes("MemFree:"))?;
    Some(Memory { used_bytes: total_bytes.saturating_sub(available), total_bytes })
}

/// Used and total bytes of the root filesystem.
fn disk() -> io::Result<(u64, u64)> {
    let mut figures = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path is NUL-terminated and the structure is writable.
    check(unsafe { libc::statvfs(c"/".as_ptr(), figures.as_mut_ptr()) })?;
    // SAFETY: statvfs is plain data, filled by the call.
    let figures = unsafe { figures.assume_init() };
    let bytes = |blocks: u64| blocks.saturating_mul(figures.f_frsize).min(MAX_EXACT);
    Ok((bytes(figures.f_blocks.saturating_sub(figures.f_bfree)), bytes(figures.f_blocks)))
}

/// The number in a file; None when the file is missing or contains "max".
fn read_number(path: &str) -> Option<u64> {
    read_small_file(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_count_idle_and_iowait_as_cpu_time() {
        assert_eq!(busy_ticks("cpu  1 20 300 9999 8888 4000 50000 7 6 5\ncpu0 1 1 1\n"), Some(54321));
    }

    #[test]
    fn reads_no_cpu_time_from_an_invalid_file() {
        assert_eq!(busy_ticks(""), None);
        assert_eq!(busy_ticks("cpu0 1 2 3 4 5 6 7\n"), None);
        assert_eq!(busy_ticks("cpu 1 2 3\n"), None);
    }

    #[test]
    fn does_not_count_available_memory_as_used() {
        let meminfo = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  600 kB\n";
        assert_eq!(of_machine(meminfo), Some(Memory { used_bytes: 400 * 1024, total_bytes: 1000 * 1024 }));
    }

    #[test]
    fn counts_free_memory_on_a_kernel_without_available_memory() {
        let meminfo = "MemTotal:  1000 kB\nMemFree:  100 kB\n";
        assert_eq!(of_machine(meminfo), Some(Memory { used_bytes: 900 * 1024, total_bytes: 1000 * 1024 }));
    }
}
