//! Supervises a command as a service: starts it again after it has ended, with pauses that grow while it keeps failing.
//!
//! A process of its own, so that the host sees one process with one journal across all restarts.

use crate::args::{Restart, Service};
use crate::os::{check, log};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// The same pauses as Docker's restart policies.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A command that ran for this long counts as started, and the pauses begin anew.
const STEADY: Duration = Duration::from_secs(10);

/// Passed on to the command. The service then ends with it.
const ENDING: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT];
/// Passed on to the command, which usually reloads its configuration.
const OTHERS: [i32; 3] = [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// Returns the exit code of the command's last run.
pub fn run(service: &Service) -> ExitCode {
    let outcome = Signals::take().and_then(|signals| supervise(service, &signals));
    ExitCode::from(outcome.unwrap_or_else(|error| {
        log::warn(format_args!("cannot run the service: {error}"));
        1
    }))
}

fn supervise(service: &Service, signals: &Signals) -> io::Result<u8> {
    let mut pause = FIRST_PAUSE;
    loop {
        let started = Instant::now();
        let mut child = match start(&service.command) {
            Ok(child) => child,
            Err(error) => return Ok(not_started(&service.command, &error)),
        };
        let (status, is_ending) = wait(&mut child, signals)?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) as u8;
        let is_due = match service.restart {
            Restart::Always => true,
            Restart::OnFailure => !status.success(),
            Restart::Never => false,
        };
        if is_ending || !is_due {
            log::warn(format_args!("the service ended: {status}"));
            return Ok(code);
        }
        if started.elapsed() >= STEADY {
            pause = FIRST_PAUSE;
        }
        log::warn(format_args!("the service ended: {status}; it starts again in {} ms", pause.as_millis()));
        if signals.ends_within(pause)? {
            return Ok(code);
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

fn start(command: &[String]) -> io::Result<Child> {
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]);
    // SAFETY: the closure only makes system calls.
    unsafe {
        program.pre_exec(|| {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            // A supervisor that is killed takes its command with it.
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)).map(drop)
        });
    }
    program.spawn()
}

/// A shell's codes. Another attempt would fail in the same way.
fn not_started(command: &[String], error: &io::Error) -> u8 {
    log::warn(format_args!("cannot start the service {:?}: {error}", command[0]));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Waits for the command and passes signals on. True if one of them ends the service.
fn wait(child: &mut Child, signals: &Signals) -> io::Result<(ExitStatus, bool)> {
    let mut is_ending = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, is_ending));
        }
        match signals.next(None)? {
            None | Some(libc::SIGCHLD) => {}
            Some(signal) => {
                is_ending |= ENDING.contains(&signal);
                // SAFETY: the child has not been waited for, so the pid is its own.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
        }
    }
}

/// The blocked signals, which are read one by one.
struct Signals(libc::sigset_t);

impl Signals {
    fn take() -> io::Result<Self> {
        // SAFETY: signal sets are plain data.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in ENDING.into_iter().chain(OTHERS).chain([libc::SIGCHLD]) {
                libc::sigaddset(&mut set, signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
            Ok(Self(set))
        }
    }

    /// None after the time limit.
    fn next(&self, limit: Option<Duration>) -> io::Result<Option<i32>> {
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), |limit| limit as *const libc::timespec);
        let mut info = MaybeUninit::uninit();
        // SAFETY: all pointers are valid or null, as the call allows.
        match check(unsafe { libc::sigtimedwait(&self.0, info.as_mut_ptr(), limit) }) {
            Ok(signal) => Ok(Some(signal)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a signal ends the service during a pause.
    fn ends_within(&self, pause: Duration) -> io::Result<bool> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if self.next(Some(left))?.is_some_and(|signal| ENDING.contains(&signal)) {
                return Ok(true);
            }
        }
    }
}
