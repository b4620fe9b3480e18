//! Listening sockets. Each connection is a session of its own.

use super::session;
use crate::agent::Agent;
use crate::os::{check, descriptor, log, own};
use crate::wire::byte_stream::split;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_local;

/// A Unix socket that only the agent's own user can connect to.
pub fn unix(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener.into())
}

/// A Unix socket in the abstract namespace. Every user can connect, so serve only `is_own_user`.
pub fn abstract_unix(name: &str) -> io::Result<OwnedFd> {
    Ok(UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?.into())
}

/// A vsock port of a virtual machine, to which the host connects.
pub fn vsock(port: u32) -> io::Result<OwnedFd> {
    // SAFETY: socket calls with a correctly sized, zeroed address; the new descriptor has no other owner.
    unsafe {
        let socket = own(libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?;
        let mut address: libc::sockaddr_vm = std::mem::zeroed();
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        address.svm_cid = libc::VMADDR_CID_ANY;
        address.svm_port = port;
        let size = size_of::<libc::sockaddr_vm>() as libc::socklen_t;
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size))?;
        check(libc::listen(socket.as_raw_fd(), 16))?;
        Ok(socket)
    }
}

/// Closes the connections that are not allowed.
pub async fn serve(agent: Rc<Agent>, listener: OwnedFd, is_allowed: fn(&OwnedFd) -> bool) -> io::Result<()> {
    let listener = descriptor::watch(listener, Interest::READABLE)?;
    loop {
        let connection = next(&listener).await?;
        if !is_allowed(&connection) {
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

/// Accepts the next connection.
pub async fn next(listener: &AsyncFd<OwnedFd>) -> io::Result<OwnedFd> {
    loop {
        let mut ready = listener.readable().await?;
        match ready.try_io(|fd| accept(fd.as_raw_fd())) {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => {
                // Usually no free descriptors: the connection waits in the backlog.
                log::warn(format_args!("cannot accept a connection: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(_would_block) => {}
        }
    }
}

async fn serve_connection(agent: Rc<Agent>, connection: OwnedFd) -> io::Result<()> {
    let (reader, writer) = split(connection)?;
    session::serve(agent, reader, writer).await
}

fn accept(listener: i32) -> io::Result<OwnedFd> {
    // SAFETY: accept4 without an address; the new descriptor has no other owner.
    unsafe { own(libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC)) }
}

/// Compares with the user that the kernel recorded when the connection was made.
pub fn is_own_user(connection: &OwnedFd) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: libc::gid_t::MAX };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the kernel fills the struct, whose size it gets.
    unsafe {
        let (fd, peer_pointer) = (connection.as_raw_fd(), (&raw mut peer).cast());
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, peer_pointer, &mut size) == 0
            && peer.uid == libc::geteuid()
    }
}
