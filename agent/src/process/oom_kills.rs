//! Detects that the kernel has killed a process because memory ran out.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// cgroup v2, then v1. A sandbox with neither cannot detect kills.
const OF_GROUP: &[&str] = &["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
/// Counts for the whole kernel, so it is used only in a virtual machine.
const OF_MACHINE: &[&str] = &["/proc/vmstat"];
const MAX_BYTES: usize = 16 * 1024;
/// The kernel's counters are a page of text, too much to search before every process.
const MACHINE_INTERVAL: Duration = Duration::from_secs(1);
/// A process that a signal ends this soon after a shortage was killed by the host.
const SHORTAGE: Duration = Duration::from_secs(2);

pub struct OomKills {
    counters: &'static [&'static str],
    interval: Duration,
    /// None until the first use.
    counter: RefCell<Option<Option<File>>>,
    seen: Cell<u64>,
    checked_at: Cell<Option<Instant>>,
    short_at: Cell<Option<Instant>>,
}

impl OomKills {
    pub fn new(is_machine: bool) -> Self {
        let (counters, interval) = if is_machine { (OF_MACHINE, MACHINE_INTERVAL) } else { (OF_GROUP, Duration::ZERO) };
        Self {
            counters,
            interval,
            counter: RefCell::default(),
            seen: Cell::default(),
            checked_at: Cell::default(),
            short_at: Cell::default(),
        }
    }

    /// Call it before a process starts, so that earlier kills do not count for that process.
    pub fn forget_earlier(&self) {
        if self.checked_at.get().is_none_or(|at| at.elapsed() >= self.interval) {
            self.any_new();
        }
    }

    /// The sandbox uses more memory than it has, so its host may kill processes.
    pub fn note_shortage(&self) {
        self.short_at.set(Some(Instant::now()));
    }

    /// Whether a process ended with this exit code because memory ran out. A shell reports the kill of its child in its own
    /// exit code.
    pub fn explain(&self, shell_code: i32) -> bool {
        let is_short = self.short_at.get().is_some_and(|at| at.elapsed() < SHORTAGE);
        match shell_code - 128 {
            libc::SIGKILL => is_short || self.any_new(),
            // The memory of a process whose stand-in on the host was killed is gone.
            libc::SIGSEGV | libc::SIGBUS => is_short,
            _ => false,
        }
    }

    /// Whether the kernel has killed a process since the last call.
    pub fn any_new(&self) -> bool {
        self.checked_at.set(Some(Instant::now()));
        let mut counter = self.counter.borrow_mut();
        let file = counter.get_or_insert_with(|| self.counters.iter().find_map(|path| File::open(path).ok()));
        let Some(count) = file.as_ref().and_then(read_count) else { return false };
        self.seen.replace(count) < count
    }
}

fn read_count(file: &File) -> Option<u64> {
    let mut bytes = [0; MAX_BYTES];
    let size = file.read_at(&mut bytes, 0).ok()?;
    parse_count(std::str::from_utf8(&bytes[..size]).ok()?)
}

fn parse_count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_counter_of_both_cgroup_versions_and_of_vmstat() {
        assert_eq!(parse_count("low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(parse_count("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!(parse_count("pgfault 12\noom_kill 1\nnuma_pages 0\n"), Some(1));
        assert_eq!(parse_count("nothing here"), None);
    }
}
