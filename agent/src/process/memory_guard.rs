//! Kills the largest process when memory runs out, where the sandbox's kernel does not.
//!
//! gVisor knows no limit of its own: above the host's limit, the host kills one of gVisor's processes, often the one that
//! is the sandbox's kernel. So the agent acts first. It stops all processes before it looks for the largest: otherwise
//! they use the memory up, and the processors, faster than it can look.

use super::memory_victim;
use super::table::ProcessTable;
use crate::os::memory::Memory;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Programs write to new memory at about 1 GB/s: half of what is free is used up after one interval at most.
const KIB_PER_MS: u64 = 2000;
const MIN_INTERVAL_MS: u64 = 10;
const MAX_INTERVAL_MS: u64 = 200;
/// gVisor begins to release the memory of a killed process 15 to 25 ms later, on a busy host much later. A second kill before
/// that hits the innocent, and nothing grows meanwhile.
const RELEASE: Duration = Duration::from_millis(3000);
const RELEASE_INTERVAL: Duration = Duration::from_millis(5);
/// The release continues for as long as use falls by this much.
const STEP_KIB: u64 = 1024;

pub async fn run(processes: Rc<ProcessTable>) {
    loop {
        let Ok(memory) = Memory::read() else {
            sleep(Duration::from_millis(MAX_INTERVAL_MS)).await;
            continue;
        };
        // Without processes no memory can run out, and an idle sandbox costs no CPU time.
        if memory.tasks <= 1 {
            processes.started.notified().await;
            continue;
        }
        if memory.free_kib() == 0 {
            send_all(libc::SIGSTOP);
            relieve(&processes).await;
            processes.note_shortage();
            // A process whose stand-in the host has killed ends now, instead of holding its memory until it wakes up.
            send_all(libc::SIGCONT);
        }
        sleep(interval(memory.free_kib())).await;
    }
}

/// Kills one process after the other until memory is free.
async fn relieve(processes: &ProcessTable) {
    let mut killed = BTreeSet::new();
    while let Some(pid) = memory_victim::find(|pid| killed.contains(&pid)) {
        processes.note_memory_kill(pid);
        // SAFETY: a plain system call. All processes are stopped, so the pid still names the one that was found.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        killed.insert(pid);
        if is_released().await {
            return;
        }
    }
}

/// Waits while the memory of a killed process is being released. False if it was not enough.
async fn is_released() -> bool {
    let mut release = Release::new(Instant::now());
    loop {
        sleep(RELEASE_INTERVAL).await;
        let Ok(memory) = Memory::read() else { return true };
        if memory.free_kib() > 0 {
            return true;
        }
        if release.has_ended(memory.used_kib, Instant::now()) {
            return false;
        }
    }
}

fn send_all(signal: i32) {
    // SAFETY: a plain system call. It reaches every process but this one and the first.
    unsafe { libc::kill(-1, signal) };
}

fn interval(free_kib: u64) -> Duration {
    Duration::from_millis((free_kib / KIB_PER_MS).clamp(MIN_INTERVAL_MS, MAX_INTERVAL_MS))
}

struct Release {
    least_kib: u64,
    fell_at: Instant,
}

impl Release {
    fn new(now: Instant) -> Self {
        Self { least_kib: u64::MAX, fell_at: now }
    }

    fn has_ended(&mut self, used_kib: u64, now: Instant) -> bool {
        if used_kib.saturating_add(STEP_KIB) <= self.least_kib {
            self.least_kib = used_kib;
            self.fell_at = now;
        }
        now.duration_since(self.fell_at) >= RELEASE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024;

    #[test]
    fn waits_for_a_kill_to_take_effect_while_memory_is_being_released() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut release = Release::new(start);
        assert!(!release.has_ended(300 * MIB, after(5)));
        assert!(!release.has_ended(300 * MIB, after(2000)));
        assert!(!release.has_ended(280 * MIB, after(2900)));
        assert!(!release.has_ended(280 * MIB - 1, after(5800)));
        assert!(release.has_ended(280 * MIB, after(5900)));
    }

    #[test]
    fn checks_more_often_the_less_memory_is_free() {
        assert_eq!(interval(0), Duration::from_millis(10));
        assert_eq!(interval(256 * MIB), Duration::from_millis(131));
        assert_eq!(interval(8192 * MIB), Duration::from_millis(200));
    }
}
