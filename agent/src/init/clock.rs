//! The clock. That of a machine which stood still, or was copied from one, is late by any time. Its RTC follows the host, and is
//! late by less than a second: QEMU starts it at a whole one. By how much, a host that cares has said in a file.

use crate::files::small_file::read_small_file;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

const RTC: &str = "/dev/rtc0";
const RTC_LATE_MS: &str = "/run/sandpiper/rtc-late-ms";
const RTC_RD_TIME: libc::Ioctl = 0x8024_7009u32 as libc::Ioctl;
/// Less than this is within what the two ways of reading differ by.
const TOLERANCE: Duration = Duration::from_millis(50);
/// What a machine was woken up for comes first.
const LET_OTHERS_BEGIN: Duration = Duration::from_millis(400);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// As the kernel's RTC interface has it.
#[repr(C)]
struct RtcTime {
    second: i32,
    minute: i32,
    hour: i32,
    day: i32,
    month: i32,
    year: i32,
    _unused: [i32; 3],
}

/// The RTC, and what it is late by. Opened before the machine stands still: one that wakes up has no time to look for it. Not for
/// longer, because it can be open only once.
pub struct Rtc {
    file: File,
    late: Duration,
}

impl Rtc {
    pub fn open() -> io::Result<Self> {
        Ok(Self { file: File::open(RTC)?, late: lateness() })
    }

    /// Makes the clock right to the second, at once.
    pub fn step(&self) -> io::Result<()> {
        let rtc = self.read()?;
        if is_other_second(now(), rtc) { set(rtc) } else { Ok(()) }
    }

    /// Makes it right to some milliseconds, which takes until the RTC's next second.
    pub async fn refine(self) -> io::Result<()> {
        tokio::time::sleep(LET_OTHERS_BEGIN).await;
        let first = self.read()?;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let exact = self.read()?;
            if exact != first {
                return if now().abs_diff(exact) > TOLERANCE { set(exact) } else { Ok(()) };
            }
        }
    }

    fn read(&self) -> io::Result<Duration> {
        Ok(read_rtc(&self.file)? + self.late)
    }
}

/// The RTC shows whole seconds: a clock that is up to one ahead of it may well be right.
fn is_other_second(clock: Duration, rtc: Duration) -> bool {
    clock + TOLERANCE < rtc || clock > rtc + Duration::from_secs(1) + TOLERANCE
}

fn lateness() -> Duration {
    parse_lateness(&read_small_file(RTC_LATE_MS).unwrap_or_default())
}

/// Some more than a second at most: the host had to look.
fn parse_lateness(text: &str) -> Duration {
    let milliseconds = text.trim().parse().ok().filter(|milliseconds| *milliseconds < 2000);
    Duration::from_millis(milliseconds.unwrap_or(0))
}

fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

fn set(time: Duration) -> io::Result<()> {
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the structure is valid for the call.
    if unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn read_rtc(file: &File) -> io::Result<Duration> {
    let mut time = MaybeUninit::<RtcTime>::zeroed();
    // SAFETY: the kernel fills the structure, which is plain data.
    let time = unsafe {
        if libc::ioctl(file.as_raw_fd(), RTC_RD_TIME, time.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        time.assume_init()
    };
    Ok(Duration::from_secs(seconds_since_1970(&time)))
}

/// Of a date from 1970 on.
fn seconds_since_1970(time: &RtcTime) -> u64 {
    // Years that begin in March have the leap day at their end.
    let (year, month) =
        if time.month < 2 { (time.year + 1899, time.month + 10) } else { (time.year + 1900, time.month - 2) };
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(time.day));
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second);
    (days * 86_400 + seconds).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::{RtcTime, is_other_second, parse_lateness, seconds_since_1970};
    use std::time::Duration;

    fn at(year: i32, month: i32, day: i32, (hour, minute, second): (i32, i32, i32)) -> u64 {
        let time = RtcTime { second, minute, hour, day, month: month - 1, year: year - 1900, _unused: [0; 3] };
        seconds_since_1970(&time)
    }

    #[test]
    fn dates_become_seconds_since_1970() {
        assert_eq!(at(1970, 1, 1, (0, 0, 0)), 0);
        assert_eq!(at(2000, 2, 29, (12, 0, 0)), 951_825_600);
        assert_eq!(at(2024, 12, 31, (23, 59, 59)), 1_735_689_599);
        assert_eq!(at(2100, 3, 1, (0, 0, 0)), 4_107_542_400);
    }

    #[test]
    fn an_rtc_is_late_by_what_a_host_can_have_seen() {
        assert_eq!(parse_lateness("734\n"), Duration::from_millis(734));
        for text in ["", "soon", "-1", "2000", "18446744073709551615"] {
            assert_eq!(parse_lateness(text), Duration::ZERO);
        }
    }

    #[test]
    fn a_clock_within_the_second_that_the_rtc_shows_is_left_alone() {
        let at = Duration::from_millis;
        assert!(!is_other_second(at(100_300), at(100_300)));
        assert!(!is_other_second(at(101_299), at(100_300)));
        assert!(!is_other_second(at(100_280), at(100_300)));
        assert!(is_other_second(at(100_000), at(100_300)));
        assert!(is_other_second(at(101_400), at(100_300)));
    }
}
