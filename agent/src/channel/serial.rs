//! A serial port or virtio console, with the line discipline out of the way.

use crate::descriptor;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tokio::io::Interest;

pub fn open(path: &Path) -> io::Result<File> {
    let port = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    make_raw(&port)?;
    Ok(port)
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

/// Waits until somebody holds the host's side of a virtio port; a terminal that was hung up never comes back. The event
/// loop takes a port that was hung up once for closed for good, so the port has an epoll of its own, which tells of each change.
pub async fn until_host(port: &File) -> io::Result<()> {
    if port.is_terminal() || !is_alone(port) {
        return Ok(());
    }
    let watched = descriptor::watch(watch_changes(port.as_raw_fd())?, Interest::READABLE)?;
    while is_alone(port) {
        let mut ready = watched.readable().await?;
        drain(watched.get_ref().as_raw_fd());
        ready.clear_ready();
    }
    Ok(())
}

fn is_alone(port: &File) -> bool {
    let mut state = libc::pollfd { fd: port.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one structure, and a call that does not wait.
    unsafe { libc::poll(&mut state, 1, 0) > 0 && state.revents & libc::POLLHUP != 0 }
}

fn watch_changes(port: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor is ours, and the kernel copies the event.
    unsafe {
        let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let changes = OwnedFd::from_raw_fd(fd);
        let mut event = libc::epoll_event { events: (libc::EPOLLOUT | libc::EPOLLET) as u32, u64: 0 };
        if libc::epoll_ctl(fd, libc::EPOLL_CTL_ADD, port, &mut event) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(changes)
    }
}

fn drain(changes: RawFd) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event, and a call that does not wait.
    while unsafe { libc::epoll_wait(changes, &mut event, 1, 0) } > 0 {}
}
