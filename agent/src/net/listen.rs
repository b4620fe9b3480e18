//! Receives what is redirected to the agent.

use super::dns_server::{self, Connections};
use super::guest_network::GuestNetwork;
use super::socket::{original_destination, reset_on_close};
use super::subscription::Flow;
use crate::os::{check, descriptor, log, own};
use crate::redirect;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpSocket, UdpSocket};
use tokio::task::spawn_local;
use tokio::time::sleep;

/// Where redirected connections and queries arrive.
pub const TCP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, redirect::TCP_PORT);
const DNS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, redirect::DNS_PORT);

const DNS_PORT: u16 = 53;
const BACKLOG: u32 = 1024;
/// How long to wait when no further socket can be opened.
const NO_ROOM_DELAY: Duration = Duration::from_millis(50);

/// Listens from now on. A connection that no caller serves is refused at once.
pub fn start(network: &Rc<GuestNetwork>) -> io::Result<()> {
    let listener = TcpSocket::new_v4()?;
    listener.set_reuseaddr(true)?;
    listener.bind(TCP.into())?;
    let listener = listener.listen(BACKLOG)?.into_std()?;
    let queries = std::net::UdpSocket::bind(DNS)?;
    queries.set_nonblocking(true)?;
    let queries = UdpSocket::from_std(queries)?;
    let listener = descriptor::watch(listener.into(), Interest::READABLE)?;
    network.is_redirected.set(true);
    spawn_local(accept_all(Rc::clone(network), listener));
    spawn_local(dns_server::serve_datagrams(Rc::clone(network), queries));
    Ok(())
}

async fn accept_all(network: Rc<GuestNetwork>, listener: AsyncFd<OwnedFd>) {
    let connections = Rc::<Connections>::default();
    loop {
        match accept(&listener).await {
            Ok((socket, source)) => arrived(&network, &connections, socket, source),
            // The connection has ended while it waited.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                log::warn(format_args!("cannot accept a connection out of the sandbox: {error}"));
                sleep(NO_ROOM_DELAY).await;
            }
        }
    }
}

async fn accept(listener: &AsyncFd<OwnedFd>) -> io::Result<(OwnedFd, SocketAddrV4)> {
    loop {
        let mut ready = listener.readable().await?;
        // SAFETY: all zeros is a valid address.
        let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let mut size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let pointer = (&raw mut address).cast();
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let accepted = ready.try_io(|fd| {
            // SAFETY: the kernel writes at most `size` bytes; the new descriptor has no other owner.
            unsafe { own(libc::accept4(fd.as_raw_fd(), pointer, &mut size, flags)) }
        });
        if let Ok(outcome) = accepted {
            let source = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            return Ok((outcome?, SocketAddrV4::new(source, u16::from_be(address.sin_port))));
        }
    }
}

/// Dropping the socket resets the connection.
fn arrived(network: &Rc<GuestNetwork>, connections: &Rc<Connections>, socket: OwnedFd, source: SocketAddrV4) {
    if reset_on_close(socket.as_raw_fd(), true).is_err() {
        return;
    }
    // A program that dials the agent itself shows the agent's address, or none.
    let Some(destination) = original_destination(&socket).ok().filter(|address| *address != TCP) else { return };
    let subscription = network.subscription();
    if subscription.is_none() && destination.port() != DNS_PORT {
        return;
    }
    set_no_delay(&socket);
    let Ok(socket) = descriptor::watch(socket, Interest::READABLE | Interest::WRITABLE).map(Rc::new) else { return };
    if destination.port() == DNS_PORT {
        let (network, connections) = (Rc::clone(network), Rc::clone(connections));
        spawn_local(async move { connections.serve(&network, socket).await });
    } else if let Some(subscription) = subscription {
        let name = network.stand_ins.borrow_mut().name_of(*destination.ip());
        subscription.add_flow(network.new_id(), Flow { socket, source, destination, name });
    }
}

/// The caller has already batched small messages.
fn set_no_delay(socket: &OwnedFd) {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads an integer.
    let outcome = check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, (&raw const on).cast(), size)
    });
    // Without it, the connection is only slower.
    drop(outcome);
}
