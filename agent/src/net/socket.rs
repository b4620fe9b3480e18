//! What the agent asks of a redirected connection's socket.

use crate::os::check;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, RawFd};

/// The destination that the program dialed, before the redirection. An error for a connection that was not redirected.
pub fn original_destination(socket: &impl AsRawFd) -> io::Result<SocketAddrV4> {
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let pointer = (&raw mut address).cast();
    // SAFETY: the kernel writes at most `size` bytes.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_IP, libc::SO_ORIGINAL_DST, pointer, &mut size) })?;
    Ok(SocketAddrV4::new(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)), u16::from_be(address.sin_port)))
}

/// Whether closing the socket resets the connection instead of ending it in good order.
pub fn reset_on_close(socket: RawFd, is_on: bool) -> io::Result<()> {
    let linger = libc::linger { l_onoff: is_on.into(), l_linger: 0 };
    let size = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the kernel reads a whole structure.
    check(unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), size) })
        .map(drop)
}
