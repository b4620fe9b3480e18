//! Starts a program with a pair of FIFOs as its stdin and stdout, in one process creation.
//!
//! usage: sandpiper-launch PARENT-PID DIRECTORY PROGRAM [ARGUMENT...]
//!
//! The FIFOs are DIRECTORY/in and DIRECTORY/out, made if they are not there. The program holds both open for reading and writing, so it never sees
//! the end of either, whoever comes and goes at the other ends. It dies with PARENT-PID. What cannot be done is written to
//! DIRECTORY/launch.log.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The most a pipe may hold without special privilege; a full one costs two task switches.
const PIPE_BYTES: i32 = 1024 * 1024;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(parent), Some(directory), Some(program)) = (words.next(), words.next(), words.next()) else {
        eprintln!("usage: sandpiper-launch PARENT-PID DIRECTORY PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let Some(parent) = parent.to_str().and_then(|text| text.parse().ok()) else {
        eprintln!("sandpiper-launch: {} is not a process id", parent.display());
        return ExitCode::from(2);
    };
    let directory = PathBuf::from(directory);
    let problem = match launch(parent, &directory, Command::new(&program).args(words)) {
        Ok(never) => match never {},
        Err(problem) => format!("starting {}: {problem}\n", program.display()),
    };
    // Nobody reads this program's stderr once it has become another.
    if std::fs::write(directory.join("launch.log"), &problem).is_err() {
        eprint!("sandpiper-launch: {problem}");
    }
    ExitCode::FAILURE
}

fn launch(parent: u32, directory: &Path, command: &mut Command) -> io::Result<std::convert::Infallible> {
    die_with(parent)?;
    // Whoever finds `in` held may read `out`, whose end is only seen by those who came after its first writer.
    let output = make_fifo(&directory.join("out"))?;
    let input = make_fifo(&directory.join("in"))?;
    Err(command.stdin(input).stdout(output).exec())
}

fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: sets a flag of this process; no memory is involved.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // A parent that ended before the flag was set will not trigger it.
    if parent_id() != parent {
        return Err(io::Error::other("its parent has ended"));
    }
    Ok(())
}

fn make_fifo(path: &Path) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } < 0 {
        let problem = io::Error::last_os_error();
        // An instance that is made first and restored into later has its FIFOs already.
        if problem.kind() != io::ErrorKind::AlreadyExists {
            return Err(problem);
        }
    }
    let file = File::options().read(true).write(true).open(path)?;
    // A pipe that keeps its default size is slower and just as correct.
    // SAFETY: the descriptor is open, and the call takes a plain number.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    Ok(file)
}
