//! Kills the largest process when memory runs out, where the sandbox's kernel does not.
//!
//! gVisor knows no limit of its own: above the host's limit, the host kills one of gVisor's processes, often the one that
//! is the sandbox's kernel. So the agent acts first.

use super::memory_victim;
use super::table::ProcessTable;
use super::tree;
use crate::os::memory::Memory;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Programs write to new memory at about 1 GB/s: half of what is free is used up after one interval at most.
const KIB_PER_MS: u64 = 2000;
const MIN_INTERVAL_MS: u64 = 10;
const MAX_INTERVAL_MS: u64 = 200;
/// gVisor releases the memory of a killed process 15 to 90 ms later. A second kill before that hits the innocent.
const RELEASE: Duration = Duration::from_millis(120);
/// Growth by this much within that time means that another process uses too much as well.
const GROWTH_KIB: u64 = 16 * 1024;

pub async fn run(processes: Rc<ProcessTable>) {
    let mut killer = Killer::default();
    loop {
        let Ok(memory) = Memory::read() else {
            sleep(Duration::from_millis(MAX_INTERVAL_MS)).await;
            continue;
        };
        // Without processes no memory can run out, and an idle sandbox costs no CPU time.
        if memory.tasks <= 1 {
            killer = Killer::default();
            processes.started.notified().await;
            continue;
        }
        let is_short = memory.free_kib() == 0;
        if is_short {
            processes.note_memory_shortage();
        }
        killer.forget_ended();
        match killer.next(&memory, Instant::now()) {
            Next::Wait => {}
            Next::Kill { is_stuck } => {
                if is_stuck {
                    tree::wake_everything();
                }
                kill_largest(&processes, &mut killer);
            }
        }
        sleep(interval(memory.free_kib())).await;
    }
}

fn kill_largest(processes: &ProcessTable, killer: &mut Killer) {
    let Some(pid) = memory_victim::find(|pid| killer.killed.contains(&pid)) else { return };
    processes.note_memory_kill(pid);
    // SAFETY: a plain system call; at worst the pid names no process any more.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    killer.killed.insert(pid);
}

fn interval(free_kib: u64) -> Duration {
    Duration::from_millis((free_kib / KIB_PER_MS).clamp(MIN_INTERVAL_MS, MAX_INTERVAL_MS))
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait,
    /// `is_stuck` when the last kill has freed nothing.
    Kill {
        is_stuck: bool,
    },
}

#[derive(Default)]
struct Killer {
    /// Pids that may still be ending.
    killed: BTreeSet<i32>,
    /// When it last killed, and how much memory was in use then.
    last: Option<(Instant, u64)>,
}

impl Killer {
    fn next(&mut self, memory: &Memory, now: Instant) -> Next {
        if memory.free_kib() > 0 {
            self.last = None;
            return Next::Wait;
        }
        let used_kib = memory.used_kib;
        let is_stuck = match self.last {
            None => false,
            Some((_, used_then)) if used_kib >= used_then + GROWTH_KIB => false,
            Some((at, _)) if now.duration_since(at) < RELEASE => return Next::Wait,
            Some((_, used_then)) => used_kib >= used_then,
        };
        self.last = Some((now, used_kib));
        Next::Kill { is_stuck }
    }

    /// Another process may get the pid of one that has ended.
    fn forget_ended(&mut self) {
        // SAFETY: signal 0 only asks whether the process exists.
        self.killed.retain(|pid| unsafe { libc::kill(*pid, 0) } == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024;

    fn used(used_kib: u64) -> Memory {
        Memory { total_kib: 256 * MIB, used_kib, tasks: 3 }
    }

    #[test]
    fn waits_while_memory_is_free() {
        let mut killer = Killer::default();
        assert_eq!(killer.next(&used(256 * MIB - 1), Instant::now()), Next::Wait);
        assert_eq!(killer.next(&used(256 * MIB), Instant::now()), Next::Kill { is_stuck: false });
    }

    #[test]
    fn gives_a_kill_time_to_take_effect_unless_use_grows() {
        let mut killer = Killer::default();
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(killer.next(&used(260 * MIB), start), Next::Kill { is_stuck: false });
        assert_eq!(killer.next(&used(270 * MIB), after(10)), Next::Wait);
        assert_eq!(killer.next(&used(276 * MIB), after(20)), Next::Kill { is_stuck: false });
        assert_eq!(killer.next(&used(276 * MIB), after(130)), Next::Wait);
        assert_eq!(killer.next(&used(270 * MIB), after(140)), Next::Kill { is_stuck: false });
        assert_eq!(killer.next(&used(270 * MIB), after(260)), Next::Kill { is_stuck: true });
    }

    #[test]
    fn checks_more_often_the_less_memory_is_free() {
        assert_eq!(interval(0), Duration::from_millis(10));
        assert_eq!(interval(256 * MIB), Duration::from_millis(131));
        assert_eq!(interval(8192 * MIB), Duration::from_millis(200));
    }
}
