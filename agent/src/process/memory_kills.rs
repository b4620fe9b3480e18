//! Whether the kernel has killed something here because memory ran out.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// cgroup v2, then v1; a sandbox that has neither cannot know.
const OF_GROUP: &[&str] = &["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
/// Of the whole kernel, which is the sandbox's own in a virtual machine only.
const OF_MACHINE: &[&str] = &["/proc/vmstat"];
const MAX_BYTES: usize = 16 * 1024;
/// The whole kernel's counters are a page of text among which one is looked for: too much to do before every process.
const MACHINE_INTERVAL: Duration = Duration::from_secs(1);

pub struct MemoryKills {
    counters: &'static [&'static str],
    interval: Duration,
    /// None until first asked for.
    counter: RefCell<Option<Option<File>>>,
    seen: Cell<u64>,
    looked_at: Cell<Option<Instant>>,
}

impl MemoryKills {
    pub fn new(is_machine: bool) -> Self {
        let (counters, interval) = if is_machine { (OF_MACHINE, MACHINE_INTERVAL) } else { (OF_GROUP, Duration::ZERO) };
        Self { counters, interval, counter: RefCell::default(), seen: Cell::default(), looked_at: Cell::default() }
    }

    /// Before a process starts: a kill from before is not to be blamed on it.
    pub fn forget_earlier(&self) {
        if self.looked_at.get().is_none_or(|at| at.elapsed() >= self.interval) {
            self.any_new();
        }
    }

    /// Whether there were any since the last call.
    pub fn any_new(&self) -> bool {
        self.looked_at.set(Some(Instant::now()));
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
    fn the_counter_of_both_kinds_of_cgroup_is_understood() {
        assert_eq!(parse_count("low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(parse_count("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!(parse_count("pgfault 12\noom_kill 1\nnuma_pages 0\n"), Some(1));
        assert_eq!(parse_count("nothing here"), None);
    }
}
