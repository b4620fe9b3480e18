//! Sockets that callers connect to; each connection is a session of its own.

use super::{Reader, Writer};
use crate::agent::Agent;
use crate::descriptor;
use crate::log;
use crate::session;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_local;

/// A Unix socket only the agent's own user can connect to.
pub fn unix(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener.into())
}

/// Everybody can connect to a name; `serve_own_user` sorts them out.
pub fn by_name(name: &str) -> io::Result<OwnedFd> {
    Ok(UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?.into())
}

pub async fn serve(agent: Rc<Agent>, listener: OwnedFd) -> io::Result<()> {
    serve_if(agent, listener, |_| true).await
}

/// Hangs up on all but the agent's own user.
pub async fn serve_own_user(agent: Rc<Agent>, listener: OwnedFd) -> io::Result<()> {
    serve_if(agent, listener, is_own_user).await
}

async fn serve_if(agent: Rc<Agent>, listener: OwnedFd, is_welcome: fn(&OwnedFd) -> bool) -> io::Result<()> {
    let listener = descriptor::watch(listener, Interest::READABLE)?;
    loop {
        let connection = next(&listener).await?;
        if !is_welcome(&connection) {
            continue;
        }
        let agent = Rc::clone(&agent);
        spawn_local(async move {
            if let Err(error) = serve_connection(agent, connection).await {
                log::warn(format_args!("a connection failed: {error}"));
            }
        });
    }
}

/// The next connection that is made.
pub async fn next(listener: &AsyncFd<OwnedFd>) -> io::Result<OwnedFd> {
    loop {
        let mut ready = listener.readable().await?;
        match ready.try_io(|fd| accept(fd.as_raw_fd())) {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => {
                // Out of descriptors, most likely: the connection waits in the backlog until some are free.
                log::warn(format_args!("cannot accept: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(_would_block) => {}
        }
    }
}

async fn serve_connection(agent: Rc<Agent>, connection: OwnedFd) -> io::Result<()> {
    let input = connection.try_clone()?;
    session::serve(agent, Reader::new(input)?, Writer::new(connection)?).await
}

fn accept(listener: i32) -> io::Result<OwnedFd> {
    // SAFETY: accept4 without an address; the new descriptor is ours.
    unsafe {
        let fd = libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// As the kernel noted it down when the connection was made.
fn is_own_user(connection: &OwnedFd) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: libc::gid_t::MAX };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the kernel fills the struct, whose size it is told.
    unsafe {
        let (fd, peer_pointer) = (connection.as_raw_fd(), (&raw mut peer).cast());
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, peer_pointer, &mut size) == 0
            && peer.uid == libc::geteuid()
    }
}
