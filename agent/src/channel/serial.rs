//! A serial port or virtio console without a line discipline.

use super::session;
use crate::agent::Agent;
use crate::os::{check, descriptor, own};
use crate::wire::byte_stream::{Reader, Writer};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;

const REOPEN_DELAY: Duration = Duration::from_millis(50);

/// A port ends or fails when the host closes its side, and works again when the host reopens it.
pub async fn serve(agent: Rc<Agent>, path: &Path) -> io::Result<()> {
    let mut port = open(path)?;
    loop {
        host_connected(&port).await?;
        let outcome = serve_port(Rc::clone(&agent), &port).await;
        if outcome.is_ok() && !port.is_terminal() {
            // Closing the port would discard what a reconnected host has already sent.
            continue;
        }
        port = loop {
            tokio::time::sleep(REOPEN_DELAY).await;
            if let Ok(port) = open(path) {
                break port;
            }
        };
    }
}

async fn serve_port(agent: Rc<Agent>, port: &File) -> io::Result<()> {
    let (input, output) = (port.try_clone()?.into(), port.try_clone()?.into());
    session::serve(agent, Reader::of_terminal(input)?, Writer::new(output)?).await
}

fn open(path: &Path) -> io::Result<File> {
    let port = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    make_raw(&port)?;
    Ok(port)
}

/// Does nothing for a virtio port, which is not a terminal.
fn make_raw(port: &File) -> io::Result<()> {
    // SAFETY: termios is plain data, and the calls get a valid pointer to it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(port.as_raw_fd(), &mut settings) < 0 {
            return Ok(());
        }
        libc::cfmakeraw(&mut settings);
        check(libc::tcsetattr(port.as_raw_fd(), libc::TCSANOW, &settings)).map(drop)
    }
}

/// Waits until the host opens its side of a virtio port. A terminal that was hung up stays so. The event loop treats a
/// port that hung up once as closed for good, so the port gets an epoll instance of its own, which reports each change.
async fn host_connected(port: &File) -> io::Result<()> {
    if port.is_terminal() || !is_hung_up(port) {
        return Ok(());
    }
    let watched = descriptor::watch(watch_changes(port.as_raw_fd())?, Interest::READABLE)?;
    while is_hung_up(port) {
        let mut ready = watched.readable().await?;
        drain(watched.get_ref().as_raw_fd());
        ready.clear_ready();
    }
    Ok(())
}

fn is_hung_up(port: &File) -> bool {
    let mut state = libc::pollfd { fd: port.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one structure, and a call that does not wait.
    unsafe { libc::poll(&mut state, 1, 0) > 0 && state.revents & libc::POLLHUP != 0 }
}

fn watch_changes(port: RawFd) -> io::Result<OwnedFd> {
    let mut event = libc::epoll_event { events: (libc::EPOLLOUT | libc::EPOLLET) as u32, u64: 0 };
    // SAFETY: the new descriptor has no other owner, and the kernel copies the event.
    unsafe {
        let changes = own(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
        check(libc::epoll_ctl(changes.as_raw_fd(), libc::EPOLL_CTL_ADD, port, &mut event))?;
        Ok(changes)
    }
}

fn drain(changes: RawFd) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event, and a call that does not wait.
    while unsafe { libc::epoll_wait(changes, &mut event, 1, 0) } > 0 {}
}
