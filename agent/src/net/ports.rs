//! The TCP ports on which something in the sandbox listens.

use super::socket_owner::{self, Order};
use super::socket_table::{self, Row};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Processes and descriptors that a search for owners may look at.
const MAX_LOOKS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    pub port: u16,
    /// The most open one, if several sockets listen on the port.
    pub address: IpAddr,
    pub pid: Option<u32>,
    pub program: Option<String>,
}

/// Each listening port with one of its sockets. `own` is the agent's listener.
pub fn listening(own: Option<std::net::SocketAddr>) -> BTreeMap<u16, Row> {
    let mut ports: BTreeMap<u16, Row> = BTreeMap::new();
    let rows = socket_table::tcp_v4().unwrap_or_default().into_iter().chain(socket_table::tcp_v6());
    for row in rows.filter(|row| row.listens() && Some(row.local) != own) {
        let kept = ports.entry(row.local.port()).or_insert(row);
        if openness(row.local.ip()) > openness(kept.local.ip()) {
            *kept = row;
        }
    }
    ports
}

/// Adds the processes.
pub fn describe<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<Port> {
    let rows: Vec<&Row> = rows.collect();
    let sockets: Vec<_> = rows.iter().map(|row| row.socket()).collect();
    let mut owners = socket_owner::find(&sockets, Order::OldestFirst, MAX_LOOKS);
    let port = |row: &Row| {
        let owner = owners.remove(&row.inode);
        Port {
            port: row.local.port(),
            address: row.local.ip(),
            pid: owner.as_ref().map(|owner| owner.pid),
            program: owner.and_then(|owner| owner.program),
        }
    };
    rows.into_iter().map(port).collect()
}

fn openness(address: IpAddr) -> u8 {
    match address {
        _ if address.is_unspecified() => 2,
        _ if address.is_loopback() => 0,
        _ => 1,
    }
}
