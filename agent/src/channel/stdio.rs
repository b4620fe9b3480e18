//! The agent's own stdin and stdout: pipes, FIFOs or a socket.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Takes descriptors 0 and 1 for the channel and leaves /dev/null in their place, so that no child ever holds them.
pub fn take() -> io::Result<(OwnedFd, OwnedFd)> {
    let input = move_away(libc::STDIN_FILENO)?;
    let output = move_away(libc::STDOUT_FILENO)?;
    Ok((input, output))
}

fn move_away(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: duplicates an open descriptor; the copy is ours alone.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open; dup2 replaces fd atomically.
    if unsafe { libc::dup2(null.as_raw_fd(), fd) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `copy` was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
