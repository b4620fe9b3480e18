//! Redirects what leaves a network namespace to the agent: all TCP, and DNS. The namespace has only its loopback device.
//!
//! The launcher does this for gVisor, which copies addresses, routes and rules from the namespace that it starts in. In
//! virtual machines and containers the agent does it.

mod layout;
mod loopback;
mod name_server;
mod nat_table;
mod netlink;
mod rule;

use crate::os::check;
use layout::{GATEWAY, NAME_SERVER, PREFIX_LENGTH};
use std::fmt::Display;
use std::io;
use std::path::Path;

pub use layout::{ADDRESS, CLOSED_PORT, DNS_PORT, TCP_PORT};

/// Gives this process a new network namespace with the redirection. The process has one thread.
pub fn enter_namespace() -> io::Result<()> {
    // SAFETY: gives this process a network namespace of its own; no memory is involved.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map_err(on("creating a network namespace"))?;
    set_up()
}

/// Sets up the current network namespace.
pub fn set_up() -> io::Result<()> {
    loopback::set_up(ADDRESS, PREFIX_LENGTH, GATEWAY).map_err(on("setting up the loopback device"))?;
    nat_table::replace_output(&rule::redirection())
        .map_err(on("setting the NAT rules, which need x_tables in the kernel (CONFIG_IP_NF_NAT)"))
}

/// Directs programs to the redirected name server.
pub fn set_name_server() -> io::Result<()> {
    name_server::write(Path::new("/etc/resolv.conf"), NAME_SERVER)
}

fn on(step: impl Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{step}: {error}"))
}
