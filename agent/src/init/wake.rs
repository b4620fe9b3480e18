//! Adapts a machine after a save: it may be a copy by now, at another time.

use super::clock::{self, Rtc};
use super::entropy;
use super::instance::{self, Instance};
use crate::os::log::attempt;
use crate::os::{check, count_processes};
use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::sync::OnceLock;
use tokio::task::spawn_local;

thread_local! {
    static RTC: RefCell<Option<Rtc>> = const { RefCell::new(None) };
}

/// Called at quiesce: opens what `wake` needs.
pub fn prepare() {
    RTC.with_borrow_mut(|kept| {
        if kept.is_none() && clock::has_rtc() {
            *kept = attempt("open the RTC", Rtc::open());
        }
    });
    attempt("open the random number generator", entropy::device());
}

/// Called for a hello or thaw that ends a quiescence, before its answer.
pub fn wake() {
    let rtc = RTC.take();
    let instance = attempt("read the host's description of this machine", instance::at_wake()).flatten();
    let time = instance.as_ref().and_then(|instance| instance.time);
    match (time, &rtc) {
        (Some(time), _) => attempt("set the clock", clock::set(time)),
        (None, Some(rtc)) => attempt("step the clock", rtc.step()),
        (None, None) => None,
    };
    if let Some(instance) = instance {
        apply(&instance);
    }
    spawn_local(async {
        if let Some(rtc) = rtc {
            attempt("set the clock", rtc.refine().await);
        }
    });
}

pub fn apply_instance() {
    if let Some(Some(instance)) = attempt("read the host's description of this machine", instance::at_boot()) {
        apply(&instance);
    }
}

fn apply(instance: &Instance) {
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
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// The kernel's limit counts all threads, including its own, which exist before the first process starts.
fn limit_processes(processes: u64) -> io::Result<()> {
    static KERNEL_THREADS: OnceLock<u64> = OnceLock::new();
    thread_local! {
        static LIMIT: Cell<Option<u64>> = const { Cell::new(None) };
    }
    if LIMIT.get() == Some(processes) {
        return Ok(());
    }
    let kernel_threads = *KERNEL_THREADS.get_or_init(|| count_processes().unwrap_or(0));
    fs::write("/proc/sys/kernel/threads-max", (processes + kernel_threads).to_string())?;
    LIMIT.set(Some(processes));
    Ok(())
}
