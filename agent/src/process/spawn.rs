//! Starts a program like posix_spawn: the child shares the agent's memory until execve, so nothing is copied.
//!
//! Unlike vfork, the agent waits with a time limit. Between its change of user and execve, any process of that user can
//! stop the child, and an agent without a limit would then wait forever.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The child only makes system calls.
const STACK_BYTES: usize = 16 * 1024;
/// A child that has not reached execve by then may be stopped, so it gets SIGCONT, first after this time.
const FIRST_CONTINUE_MS: c_int = 100;
/// Short, because a process that stops everything leaves the child only moments between two signals.
const CONTINUE_INTERVAL_MS: c_int = 1;
const MAX_CONTINUES: usize = 10_000;

/// Everything the child needs, prepared in advance because the child must not allocate.
pub struct Program<'a> {
    pub path: &'a CStr,
    pub argv: &'a [CString],
    pub env: &'a [CString],
    pub cwd: &'a CStr,
    /// Start in the root directory if `cwd` does not exist.
    pub or_root: bool,
    pub stdio: [RawFd; 3],
    /// Makes descriptor 0 the controlling terminal.
    pub has_terminal: bool,
    /// None keeps the agent's own.
    pub credentials: Option<Credentials<'a>>,
    /// The limit on open files that the agent started with.
    pub open_files: Option<libc::rlimit>,
}

pub struct Credentials<'a> {
    pub uid: u32,
    pub gid: u32,
    /// None when the agent has the same groups.
    pub groups: Option<&'a [u32]>,
}

/// What the child was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Clone,
    /// It reached neither execve nor an error within the time limit.
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
    /// It runs in the root directory because its `cwd` does not exist.
    pub is_at_root: bool,
}

/// The new process leads its own session and process group. The caller must block all signals. `status` is a pipe whose
/// write end the child closes at execve or exit, which tells the agent of either.
pub fn spawn(program: &Program, status: (&OwnedFd, OwnedFd)) -> Result<Spawned, Failure> {
    let child = Child {
        program,
        argv: pointers(program.argv),
        env: pointers(program.env),
        failure: UnsafeCell::new(None),
        is_at_root: UnsafeCell::new(false),
    };
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    // SAFETY: the stack is aligned and large enough for `run_child`. The stack and `child` stay unchanged until `wait`
    // returns, when the child no longer runs in this memory.
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
    // SAFETY: collects the child that has just exited; no other code knows its pid.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    Err(failure)
}

/// Returns when the child no longer shares the agent's memory. False when that took a kill.
fn wait(status: RawFd, pid: i32) -> bool {
    let mut watched = libc::pollfd { fd: status, events: libc::POLLIN, revents: 0 };
    // SAFETY: poll gets one valid pollfd; the pid is a child that has not been waited for.
    unsafe {
        for round in 0..MAX_CONTINUES {
            let timeout_ms = if round == 0 { FIRST_CONTINUE_MS } else { CONTINUE_INTERVAL_MS };
            if libc::poll(&mut watched, 1, timeout_ms) > 0 {
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
    // SAFETY: it makes only raw system calls, all that a child in shared memory may do.
    let step = unsafe { prepare_and_exec(child) };
    // SAFETY: the parent reads `failure` only after this child has exited.
    unsafe { *child.failure.get() = Some((step, *libc::__errno_location())) };
    // SAFETY: exits without running the agent's exit handlers.
    unsafe { libc::_exit(127) }
}

/// Returns only when a step has failed. Uses `syscall` because setuid and setgroups of the C library signal the agent's
/// threads.
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
        // After the change of user, so that the kernel checks the permissions of that user.
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
        let (reading, writing) = pipe::pair().unwrap();
        spawn(&program, (&reading, writing))
    }

    fn wait_for(pid: i32) -> i32 {
        let mut status = -1;
        // SAFETY: waits for a child that has just started.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        status
    }

    #[test]
    fn runs_a_program_in_the_given_directory() {
        let spawned = try_spawn("/bin/true", "/tmp", false).unwrap();
        assert_eq!((wait_for(spawned.pid), spawned.is_at_root), (0, false));
    }

    #[test]
    fn reports_the_failed_step_and_leaves_no_zombie() {
        let missing = try_spawn("/no/such/program", "/", false).unwrap_err();
        assert_eq!((missing.step, missing.error.raw_os_error()), (Step::Exec, Some(libc::ENOENT)));
        let nowhere = try_spawn("/bin/true", "/no/such/directory", false).unwrap_err();
        assert_eq!((nowhere.step, nowhere.error.raw_os_error()), (Step::Directory, Some(libc::ENOENT)));
    }

    #[test]
    fn uses_the_root_directory_in_place_of_an_optional_missing_one() {
        let spawned = try_spawn("/bin/true", "/no/such/directory", true).unwrap();
        assert_eq!((wait_for(spawned.pid), spawned.is_at_root), (0, true));
    }
}
