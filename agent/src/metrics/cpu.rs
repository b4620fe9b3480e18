//! CPU time of everything in the sandbox, exited processes included.

use super::{field, read_number};
use crate::files::small_file::read_small_file;
use std::io;

pub fn used_ms() -> io::Result<f64> {
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

/// user, nice, system, (idle, iowait,) irq and softirq of the first line.
fn busy_ticks(stat: &str) -> Option<u64> {
    let mut words = stat.lines().next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else { return None };
    Some(user + nice + system + irq + softirq)
}

#[cfg(test)]
mod tests {
    use super::busy_ticks;

    #[test]
    fn time_spent_idle_or_waiting_is_not_used() {
        assert_eq!(busy_ticks("cpu  1 20 300 9999 8888 4000 50000 7 6 5\ncpu0 1 1 1\n"), Some(54321));
    }

    #[test]
    fn a_file_that_is_no_stat_gives_nothing() {
        assert_eq!(busy_ticks(""), None);
        assert_eq!(busy_ticks("cpu0 1 2 3 4 5 6 7\n"), None);
        assert_eq!(busy_ticks("cpu 1 2 3\n"), None);
    }
}
