//! Whether the kernel has killed something here because memory ran out.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// cgroup v2, then v1; a sandbox that has neither cannot know.
const COUNTERS: &[&str] = &["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

#[derive(Default)]
pub struct MemoryKills {
    /// None until first asked for.
    counter: RefCell<Option<Option<File>>>,
    seen: Cell<u64>,
}

impl MemoryKills {
    /// Whether there were any since the last call.
    pub fn any_new(&self) -> bool {
        let mut counter = self.counter.borrow_mut();
        let file = counter.get_or_insert_with(|| COUNTERS.iter().find_map(|path| File::open(path).ok()));
        let Some(count) = file.as_ref().and_then(read_count) else { return false };
        self.seen.replace(count) < count
    }
}

fn read_count(file: &File) -> Option<u64> {
    let mut bytes = [0; 512];
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
        assert_eq!(parse_count("nothing here"), None);
    }
}
