//! Corrects the clock of a machine that was suspended or copied. Its RTC follows the host but starts at a full second, so
//! it lags by less than one second. The host may write the lag to a file.

use crate::os::check;
use crate::os::small_file::read_small_file;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

const RTC: &str = "/dev/rtc0";
const RTC_LAG_MS: &str = "/run/sandpiper/rtc-late-ms";
const RTC_RD_TIME: libc::Ioctl = 0x8024_7009u32 as libc::Ioctl;
/// The two clocks can differ by this much although both are right.
const TOLERANCE: Duration = Duration::from_millis(50);
/// The request that woke the machine runs first.
const REFINE_DELAY: Duration = Duration::from_millis(400);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// `struct rtc_time` of the kernel.
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

/// Firecracker's machines have no RTC: their host sends the time.
pub fn has_rtc() -> bool {
    Path::new(RTC).exists()
}

/// Opened at quiesce, to save time at wake-up. Not kept open, because only one program can open it at a time.
pub struct Rtc {
    file: File,
    lag: Duration,
}

impl Rtc {
    pub fn open() -> io::Result<Self> {
        Ok(Self { file: File::open(RTC)?, lag: read_lag() })
    }

    /// Sets the clock to the right second, at once.
    pub fn step(&self) -> io::Result<()> {
        let rtc = self.read()?;
        if is_other_second(now(), rtc) { set(rtc) } else { Ok(()) }
    }

    /// Sets the clock to within some milliseconds, which takes until the RTC's next second.
    pub async fn refine(self) -> io::Result<()> {
        tokio::time::sleep(REFINE_DELAY).await;
        let first = self.read()?;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let exact = self.read()?;
            if exact != first {
                return if now().abs_diff(exact) > TOLERANCE { set(exact) } else { Ok(()) };
            }
        }
    }

    fn read(&self) -> io::Result<Duration> {
        Ok(read_rtc(&self.file)? + self.lag)
    }
}

/// The RTC shows full seconds, so a clock up to one second ahead of it may be right.
fn is_other_second(clock: Duration, rtc: Duration) -> bool {
    clock + TOLERANCE < rtc || clock > rtc + Duration::from_secs(1) + TOLERANCE
}

fn read_lag() -> Duration {
    parse_lag(&read_small_file(RTC_LAG_MS).unwrap_or_default())
}

/// Little more than a second at most, including the time the host took to measure it.
fn parse_lag(text: &str) -> Duration {
    let milliseconds = text.trim().parse().ok().filter(|milliseconds| *milliseconds < 2000);
    Duration::from_millis(milliseconds.unwrap_or(0))
}

fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

pub fn set(time: Duration) -> io::Result<()> {
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the structure is valid for the call.
    check(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) }).map(drop)
}

fn read_rtc(file: &File) -> io::Result<Duration> {
    let mut time = MaybeUninit::<RtcTime>::zeroed();
    // SAFETY: the kernel fills the structure, which is plain data.
    let time = unsafe {
        check(libc::ioctl(file.as_raw_fd(), RTC_RD_TIME, time.as_mut_ptr()))?;
        time.assume_init()
    };
    Ok(Duration::from_secs(seconds_since_1970(&time)))
}

/// For dates from 1970 on.
fn seconds_since_1970(time: &RtcTime) -> u64 {
    // A year that begins in March has its leap day at the end.
    let (year, month) =
        if time.month < 2 { (time.year + 1899, time.month + 10) } else { (time.year + 1900, time.month - 2) };
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(time.day));
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second);
    (days * 86_400 + seconds).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::{RtcTime, is_other_second, parse_lag, seconds_since_1970};
    use std::time::Duration;

    fn at(year: i32, month: i32, day: i32, (hour, minute, second): (i32, i32, i32)) -> u64 {
        let time = RtcTime { second, minute, hour, day, month: month - 1, year: year - 1900, _unused: [0; 3] };
        seconds_since_1970(&time)
    }

    #[test]
    fn converts_dates_to_seconds_since_1970() {
        assert_eq!(at(1970, 1, 1, (0, 0, 0)), 0);
        assert_eq!(at(2000, 2, 29, (12, 0, 0)), 951_825_600);
        assert_eq!(at(2024, 12, 31, (23, 59, 59)), 1_735_689_599);
        assert_eq!(at(2100, 3, 1, (0, 0, 0)), 4_107_542_400);
    }

    #[test]
    fn ignores_a_lag_that_no_host_can_have_measured() {
        assert_eq!(parse_lag("734\n"), Duration::from_millis(734));
        for text in ["", "soon", "-1", "2000", "18446744073709551615"] {
            assert_eq!(parse_lag(text), Duration::ZERO);
        }
    }

    #[test]
    fn keeps_a_clock_within_the_second_that_the_rtc_shows() {
        let at = Duration::from_millis;
        assert!(!is_other_second(at(100_300), at(100_300)));
        assert!(!is_other_second(at(101_299), at(100_300)));
        assert!(!is_other_second(at(100_280), at(100_300)));
        assert!(is_other_second(at(100_000), at(100_300)));
        assert!(is_other_second(at(101_400), at(100_300)));
    }
}
