//! A serial port or virtio console, with the line discipline out of the way.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub fn open(path: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    let port = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    make_raw(&port)?;
    Ok((port.try_clone()?.into(), port.into()))
}

/// A virtio port is no terminal and needs nothing.
fn make_raw(port: &File) -> io::Result<()> {
    // SAFETY: termios is plain data, and the calls get a valid pointer to it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(port.as_raw_fd(), &mut settings) < 0 {
            return Ok(());
        }
        libc::cfmakeraw(&mut settings);
        if libc::tcsetattr(port.as_raw_fd(), libc::TCSANOW, &settings) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
