//! What a machine does when it finds that it stood still: it may be another one by now, at another time.

use super::clock::Rtc;
use super::{attempt, entropy, instance};
use crate::log;
use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::sync::OnceLock;
use tokio::task::spawn_local;

thread_local! {
    static RTC: RefCell<Option<Rtc>> = const { RefCell::new(None) };
}

/// When a quiescence begins: opens what is needed at its end.
pub fn prepare() {
    RTC.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = attempt("open the RTC", Rtc::open());
        }
    });
    attempt("open the source of randomness", entropy::device());
}

/// After a hello or a thaw that ended a quiescence. The caller's answer comes after it.
pub fn wake() {
    let rtc = RTC.take();
    if let Some(rtc) = &rtc {
        attempt("step the clock", rtc.step());
    }
    apply_instance();
    spawn_local(async {
        let Some(rtc) = rtc else { return };
        if let Err(error) = rtc.refine().await {
            log::warn(format_args!("cannot set the clock: {error}"));
        }
    });
}

pub fn apply_instance() {
    let Some(Some(instance)) = attempt("read what the host says", instance::read()) else { return };
    if !instance.seed.is_empty() {
        attempt("add entropy", entropy::add(&instance.seed));
    }
    if let Some(hostname) = &instance.hostname {
        attempt("set the hostname", set_hostname(hostname));
    }
    if let Some(processes) = instance.processes {
        attempt("limit processes", limit_processes(processes));
    }
}

fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: the bytes are valid for their length.
    if unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The limit is on all threads, and the kernel has some of its own: those that were there before the first process.
fn limit_processes(processes: u64) -> io::Result<()> {
    static KERNEL_THREADS: OnceLock<u64> = OnceLock::new();
    thread_local! {
        static LIMIT: Cell<Option<u64>> = const { Cell::new(None) };
    }
    if LIMIT.get() == Some(processes) {
        return Ok(());
    }
    let kernel_threads = *KERNEL_THREADS.get_or_init(|| fs::read_dir("/proc").map_or(0, count_processes));
    fs::write("/proc/sys/kernel/threads-max", (processes + kernel_threads).to_string())?;
    LIMIT.set(Some(processes));
    Ok(())
}

fn count_processes(entries: fs::ReadDir) -> u64 {
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    entries.flatten().filter(|entry| is_process(&entry.file_name())).count() as u64
}
