//! Starts a program the way posix_spawn does: the child borrows the agent's memory until it execs, so nothing is copied.
//!
//! Unlike vfork, the agent waits for that with a time limit. Between taking on its user and becoming its program the
//! child can be stopped by any process of that user, and an agent that waited for ever could be stopped with it.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The child only makes system calls.
const STACK_BYTES: usize = 16 * 1024;
/// A child that has not got there by then is told to go on, in case somebody has stopped it: more often once it is late.
const FIRST_NUDGE_AFTER_MS: c_int = 100;
const NUDGE_AFTER_MS: c_int = 20;
const MAX_NUDGES: usize = 500;

/// Everything the child needs, prepared before it exists, because it may not allocate.
pub struct Program<'a> {
    pub path: &'a CStr,
    pub argv: &'a [CString],
    pub env: &'a [CString],
    pub cwd: &'a CStr,
    /// Start in the root directory when there is no such `cwd`.
    pub or_root: bool,
    pub stdio: [RawFd; 3],
    /// Makes descriptor 0 the controlling terminal.
    pub has_terminal: bool,
    /// None keeps the agent's own.
    pub credentials: Option<Credentials<'a>>,
    /// The limit on open files that the agent itself was started with.
    pub open_files: Option<libc::rlimit>,
}

pub struct Credentials<'a> {
    pub uid: u32,
    pub gid: u32,
    /// None when the agent has the same ones.
    pub groups: Option<&'a [u32]>,
}

/// What the child was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Clone,
    /// It did not get as far as to fail.
    Waiting,
    Session,
    Terminal,
    Stdio,
    OpenFiles,
    Credentials,
    Directory,
    Exec,
}

#[derive(Debug)]
pub struct Failure {
    pub step: Step,
    pub error: io::Error,
}

struct Child<'a> {
    program: &'a Program<'a>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    failure: UnsafeCell<Option<(Step, c_int)>>,
    is_at_root: UnsafeCell<bool>,
}

#[derive(Debug)]
pub struct Spawned {
    pub pid: i32,
    /// Not in its `cwd`, since there is none.
    pub is_at_root: bool,
}

/// The new process leads a session and process group of its own. All signals must be blocked in the caller. `status` is
/// a pipe: the child closes its writing end by its exec or its end, which is how the agent learns of either.
pub fn spawn(program: &Program, status: (&OwnedFd, OwnedFd)) -> Result<Spawned, Failure> {
    let child = Child {
        program,
        argv: pointers(program.argv),
        env: pointers(program.env),
        failure: UnsafeCell::new(None),
        is_at_root: UnsafeCell::new(false),
    };
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    // SAFETY: the stack is ours, aligned and big enough for `run_child`; it and `child` stay as they are until `wait` has
    // seen that the child no longer runs in this memory.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(run_child, top.cast(), libc::CLONE_VM | libc::SIGCHLD, (&raw const child).cast_mut().cast())
    };
    if pid < 0 {
        return Err(Failure { step: Step::Clone, error: io::Error::last_os_error() });
    }
    drop(status.1);
    let gave_up = !wait(status.0.as_raw_fd(), pid);
    let failure = match child.failure.into_inner() {
        None if gave_up => Failure { step: Step::Waiting, error: io::Error::from_raw_os_error(libc::ETIMEDOUT) },
        None => return Ok(Spawned { pid, is_at_root: child.is_at_root.into_inner() }),
        Some((step, errno)) => Failure { step, error: io::Error::from_raw_os_error(errno) },
    };
    // SAFETY: collects the child that has just ended; nobody else knows its pid.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    Err(failure)
}

/// Returns when the child has its own memory or none. False when it had to be killed for that.
fn wait(status: RawFd, pid: i32) -> bool {
    let mut watched = libc::pollfd { fd: status, events: libc::POLLIN, revents: 0 };
    // SAFETY: poll gets one valid pollfd; the pid is a child that has not been waited for.
    unsafe {
        for nudge in 0..MAX_NUDGES {
            let patience = if nudge == 0 { FIRST_NUDGE_AFTER_MS } else { NUDGE_AFTER_MS };
            if libc::poll(&mut watched, 1, patience) > 0 {
                return true;
            }
            libc::kill(pid, libc::SIGCONT);
        }
        libc::kill(pid, libc::SIGKILL);
        while libc::poll(&mut watched, 1, -1) <= 0 {}
    }
    false
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

extern "C" fn run_child(argument: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a `Child` that outlives this function.
    let child = unsafe { &*argument.cast::<Child>() };
    // SAFETY: only raw system calls, which is all that a child in borrowed memory may do.
    let step = unsafe { prepare_and_exec(child) };
    // SAFETY: the parent waits and looks at `failure` only when this child has gone.
    unsafe { *child.failure.get() = Some((step, *libc::__errno_location())) };
    // SAFETY: ends the child without running anything of the agent's.
    unsafe { libc::_exit(127) }
}

/// Returns only when a step has failed. The C library's setuid and setgroups would signal the agent's threads, hence
/// `syscall`.
unsafe fn prepare_and_exec(child: &Child) -> Step {
    let program = child.program;
    // SAFETY: every pointer comes from `Child` and is valid; see the function's caller.
    unsafe {
        if libc::setsid() < 0 {
            return Step::Session;
        }
        if program.has_terminal && libc::ioctl(program.stdio[0], libc::TIOCSCTTY, 0) < 0 {
            return Step::Terminal;
        }
        for (target, fd) in (0..).zip(program.stdio) {
            if fd != target && libc::dup2(fd, target) < 0 {
                return Step::Stdio;
            }
        }
        if let Some(limit) = &program.open_files
            && libc::setrlimit(libc::RLIMIT_NOFILE, limit) < 0
        {
            return Step::OpenFiles;
        }
        if let Some(who) = &program.credentials
            && (who.groups.is_some_and(|groups| libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) < 0)
                || libc::syscall(libc::SYS_setresgid, who.gid, who.gid, who.gid) < 0
                || libc::syscall(libc::SYS_setresuid, who.uid, who.uid, who.uid) < 0)
        {
            return Step::Credentials;
        }
        // After the change of user, so that nobody enters a directory that is closed to them.
        if libc::chdir(program.cwd.as_ptr()) < 0 {
            let is_missing = matches!(*libc::__errno_location(), libc::ENOENT | libc::ENOTDIR);
            if !(program.or_root && is_missing && libc::chdir(c"/".as_ptr()) == 0) {
                return Step::Directory;
            }
            *child.is_at_root.get() = true;
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::execve(program.path.as_ptr(), child.argv.as_ptr(), child.env.as_ptr());
        Step::Exec
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::pipe;

    fn try_spawn(path: &str, cwd: &str, or_root: bool) -> Result<Spawned, Failure> {
        let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let (path, cwd) = (CString::new(path).unwrap(), CString::new(cwd).unwrap());
        let program = Program {
            path: &path,
            argv: std::slice::from_ref(&path),
            env: &[],
            cwd: &cwd,
            or_root,
            stdio: [null.as_raw_fd(); 3],
            has_terminal: false,
            credentials: None,
            open_files: None,
        };
        {
            let (reading, writing) = pipe::pair().unwrap();
            spawn(&program, (&reading, writing))
        }
    }

    fn wait_for(pid: i32) -> i32 {
        let mut status = -1;
        // SAFETY: waits for a child that was just started.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        status
    }

    #[test]
    fn a_program_runs_where_it_was_told_to() {
        let spawned = try_spawn("/bin/true", "/tmp", false).unwrap();
        assert_eq!((wait_for(spawned.pid), spawned.is_at_root), (0, false));
    }

    #[test]
    fn a_failure_names_the_step_and_leaves_no_zombie() {
        let missing = try_spawn("/no/such/program", "/", false).unwrap_err();
        assert_eq!((missing.step, missing.error.raw_os_error()), (Step::Exec, Some(libc::ENOENT)));
        let nowhere = try_spawn("/bin/true", "/no/such/directory", false).unwrap_err();
        assert_eq!((nowhere.step, nowhere.error.raw_os_error()), (Step::Directory, Some(libc::ENOENT)));
    }

    #[test]
    fn a_directory_that_may_be_missing_is_replaced_by_the_root() {
        let spawned = try_spawn("/bin/true", "/no/such/directory", true).unwrap();
        assert_eq!((wait_for(spawned.pid), spawned.is_at_root), (0, true));
    }
}
