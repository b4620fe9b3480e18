//! The loopback device with an address of its own and the default route. Without a route the kernel would refuse a
//! connection before any rule sees it.

use super::netlink::{self, Request};
use std::io;
use std::net::Ipv4Addr;

/// The index that the loopback device has in every network namespace.
const INDEX: u32 = 1;
const FAMILY: u8 = libc::AF_INET as u8;
/// Accepts what is set up already.
const CREATE: libc::c_int = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;

pub fn set_up(address: Ipv4Addr, prefix_length: u8, gateway: Ipv4Addr) -> io::Result<()> {
    let socket = netlink::open()?;
    Request::new(libc::RTM_NEWLINK, 0, &link_up()).send(&socket)?;
    Request::new(libc::RTM_NEWADDR, CREATE, &address_head(prefix_length))
        .attribute(libc::IFA_LOCAL, address.octets())
        .attribute(libc::IFA_ADDRESS, address.octets())
        .send(&socket)?;
    Request::new(libc::RTM_NEWROUTE, CREATE, &default_route())
        .attribute(libc::RTA_GATEWAY, gateway.octets())
        .attribute(libc::RTA_OIF, INDEX.to_ne_bytes())
        .send(&socket)
}

/// `struct ifinfomsg`: the flag, and the mask of the flags to change.
fn link_up() -> [u8; 16] {
    let mut head = [0; 16];
    let up = (libc::IFF_UP as u32).to_ne_bytes();
    head[4..8].copy_from_slice(&INDEX.to_ne_bytes());
    head[8..12].copy_from_slice(&up);
    head[12..].copy_from_slice(&up);
    head
}

/// `struct ifaddrmsg`
fn address_head(prefix_length: u8) -> [u8; 8] {
    let mut head = [FAMILY, prefix_length, 0, libc::RT_SCOPE_UNIVERSE, 0, 0, 0, 0];
    head[4..].copy_from_slice(&INDEX.to_ne_bytes());
    head
}

/// `struct rtmsg`: a prefix of no bits is the default route.
fn default_route() -> [u8; 12] {
    let [table, protocol, scope, kind] =
        [libc::RT_TABLE_MAIN, libc::RTPROT_BOOT, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST];
    [FAMILY, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0]
}
