//! The addresses and ports of a redirected network namespace.

use std::net::Ipv4Addr;

/// Where redirected TCP connections arrive, on 127.0.0.1.
pub const TCP_PORT: u16 = 15001;
/// Where redirected DNS queries arrive, on 127.0.0.1.
pub const DNS_PORT: u16 = 15053;
/// Where all other datagrams go. Nothing listens there, so the kernel refuses them at once. Only root could listen there.
pub const CLOSED_PORT: u16 = 9;

/// The address of the namespace. Connections to it stay inside.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
pub const PREFIX_LENGTH: u8 = 24;
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
/// Any address that is redirected would do.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
