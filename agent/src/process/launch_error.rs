//! Why a process did not start. The code depends on what the caller can do about it.

use super::command::Resolved;
use super::spawn::{Failure, Step};
use crate::error::{AgentError, Code};
use crate::os::user::User;
use std::path::Path;

pub fn describe(failure: &Failure, command: &Resolved, cwd: &Path, user: &User) -> AgentError {
    let (program, cwd) = (&command.argv[0], cwd.display());
    let errno = failure.error.raw_os_error().unwrap_or(0);
    let (code, reason, problem) = match (failure.step, errno) {
        (_, libc::EAGAIN) => (Code::ResourceExhausted, "process_limit", "the limit on processes is reached".into()),
        (_, libc::ENOMEM) => (Code::ResourceExhausted, "not_enough_memory", "not enough memory".into()),
        (_, libc::EMFILE | libc::ENFILE) => {
            (Code::ResourceExhausted, "too_many_open_files", "the limit on open files is reached".into())
        }
        (Step::Waiting, _) => {
            (Code::Unavailable, "process_stopped", format!("a process of user {} keeps stopping it", user.name))
        }
        (Step::Directory, libc::ENOENT | libc::ENOTDIR) => {
            (Code::NotFound, "no_such_directory", format!("directory {cwd} not found"))
        }
        (Step::Directory, libc::EACCES) => {
            (Code::PermissionDenied, "not_permitted", format!("user {} may not enter {cwd}", user.name))
        }
        (Step::Exec, libc::ENOENT) if command.program.exists() => {
            (Code::NotFound, "no_such_program", "the interpreter or loader that it names is missing".into())
        }
        (Step::Exec, libc::ENOENT | libc::ENOTDIR) => (Code::NotFound, "no_such_program", "program not found".into()),
        (Step::Exec, libc::EACCES | libc::EPERM) => {
            (Code::FailedPrecondition, "not_executable", format!("user {} may not execute it", user.name))
        }
        (Step::Exec, libc::ENOEXEC) => (
            Code::FailedPrecondition,
            "not_executable",
            "it is not executable: neither a program nor a script with \"#!\"".into(),
        ),
        (Step::Exec, libc::E2BIG) => {
            (Code::InvalidArgument, "too_many_arguments", "its arguments and environment are too long".into())
        }
        (Step::Credentials, _) => {
            (Code::PermissionDenied, "other_user", format!("cannot switch to user {}: {}", user.name, failure.error))
        }
        (step, _) => (Code::Internal, "spawn_failed", format!("{step:?} failed: {}", failure.error)),
    };
    AgentError::new(code, reason, format!("cannot run {program:?}: {problem}"))
}
