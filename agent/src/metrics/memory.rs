//! Memory the sandbox could not give back at once, and what it may use at most.

use super::{field, read_number};
use crate::files::small_file::read_small_file;
use std::io;

#[derive(Debug, PartialEq)]
pub struct Memory {
    pub used_bytes: u64,
    pub total_bytes: u64,
}

/// The same figures under their names in either generation of cgroups.
struct Group {
    usage: &'static str,
    limit: &'static str,
    stat: &'static str,
    /// Page cache that nobody has touched lately: given back as soon as memory is short, so it does not count as used.
    idle_cache: &'static str,
}

const GROUPS: [Group; 2] = [
    Group {
        usage: "/sys/fs/cgroup/memory.current",
        limit: "/sys/fs/cgroup/memory.max",
        stat: "/sys/fs/cgroup/memory.stat",
        idle_cache: "inactive_file",
    },
    Group {
        usage: "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        limit: "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        stat: "/sys/fs/cgroup/memory/memory.stat",
        idle_cache: "total_inactive_file",
    },
];

pub fn read() -> io::Result<Memory> {
    let machine = of_machine(&read_small_file("/proc/meminfo")?).ok_or(io::ErrorKind::InvalidData)?;
    // A limit at or above the machine's memory is none, and then the group may be one that counts nothing at all.
    let limited = GROUPS.iter().find_map(|group| {
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

#[cfg(test)]
mod tests {
    use super::{Memory, of_machine};

    #[test]
    fn memory_that_can_be_had_at_once_is_not_used() {
        let meminfo = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  600 kB\n";
        assert_eq!(of_machine(meminfo), Some(Memory { used_bytes: 400 * 1024, total_bytes: 1000 * 1024 }));
    }

    #[test]
    fn a_kernel_that_names_no_available_memory_counts_by_free() {
        let meminfo = "MemTotal:  1000 kB\nMemFree:  100 kB\n";
        assert_eq!(of_machine(meminfo), Some(Memory { used_bytes: 900 * 1024, total_bytes: 1000 * 1024 }));
    }
}
