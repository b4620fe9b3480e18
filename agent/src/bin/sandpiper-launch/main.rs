//! Starts a program with a pair of FIFOs as its stdin and stdout, in one process creation.
//!
//! usage: sandpiper-launch [--root IMAGE MOUNT-POINT ID-MAP] [--network] PARENT-PID DIRECTORY PROGRAM [ARGUMENT...]
//!        sandpiper-launch --check-network
//!
//! With --root, the program finds the directory IMAGE at MOUNT-POINT with the owners that ID-MAP gives its files. With
//! --network, it has a new network namespace, which redirects TCP and DNS to the ports of an agent. --check-network only
//! reports whether this machine can set up such a namespace.
//! The FIFOs are DIRECTORY/in and DIRECTORY/out, created if they are missing. The program holds both open for reading and
//! writing, so it never sees the end of either when its peers change. It is killed when the process PARENT-PID exits.
//! Errors go to DIRECTORY/launch.log.

mod image_copy;
mod mapped_root;

use mapped_root::MappedRoot;
use sandpiper_agent::os::check;
use sandpiper_agent::redirect;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The largest pipe without a privilege. A full pipe costs two task switches.
const PIPE_BYTES: i32 = 1024 * 1024;

const USAGE: &str =
    "usage: sandpiper-launch [--root IMAGE MOUNT-POINT ID-MAP] [--network] PARENT-PID DIRECTORY PROGRAM [ARGUMENT...]
       sandpiper-launch --check-network";

/// What the program finds other than in the launcher's own environment.
struct Surroundings {
    root: Option<MappedRoot>,
    has_network: bool,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == "--check-network").is_some() {
        return check_network();
    }
    let root = words
        .next_if(|word| word == "--root")
        .and_then(|_| Some(MappedRoot { image: words.next()?, mount_point: words.next()?, id_map: words.next()? }));
    let surroundings = Surroundings { root, has_network: words.next_if(|word| word == "--network").is_some() };
    let (Some(parent), Some(directory), Some(program)) = (words.next(), words.next(), words.next()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Some(parent) = parent.to_str().and_then(|text| text.parse().ok()) else {
        eprintln!("sandpiper-launch: {} is not a process id", parent.display());
        return ExitCode::from(2);
    };
    let directory = PathBuf::from(directory);
    let problem = match launch(parent, surroundings, &directory, Command::new(&program).args(words)) {
        Ok(never) => match never {},
        Err(problem) => format!("starting {}: {problem}\n", program.display()),
    };
    // The provider reads the log and not this program's stderr.
    if std::fs::write(directory.join("launch.log"), &problem).is_err() {
        eprint!("sandpiper-launch: {problem}");
    }
    ExitCode::FAILURE
}

/// The namespace ends with this process.
fn check_network() -> ExitCode {
    match redirect::enter_namespace() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn launch(
    parent: u32,
    Surroundings { root, has_network }: Surroundings,
    directory: &Path,
    command: &mut Command,
) -> io::Result<std::convert::Infallible> {
    die_with(parent)?;
    if let Some(root) = root {
        root.mount()?;
    }
    if has_network {
        redirect::enter_namespace()?;
    }
    // `out` comes first: a peer that finds a reader on `in` may open `out`, which then must have a writer.
    let output = make_fifo(&directory.join("out"))?;
    let input = make_fifo(&directory.join("in"))?;
    Err(command.stdin(input).stdout(output).exec())
}

fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: sets a flag of this process; no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // A parent that exited before does not trigger the signal.
    if parent_id() != parent {
        return Err(io::Error::other("its parent has exited"));
    }
    Ok(())
}

fn make_fifo(path: &Path) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    match check(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }) {
        // A prepared instance already has its FIFOs.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let file = File::options().read(true).write(true).open(path)?;
    // A failure only makes the pipe slower.
    // SAFETY: the descriptor is open, and the call takes a plain number.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    Ok(file)
}
