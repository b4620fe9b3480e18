//! The rules of the redirection, in the order in which the kernel tries them.

use super::layout::{ADDRESS, CLOSED_PORT, DNS_PORT, TCP_PORT};
use std::net::Ipv4Addr;

const LOOPBACK: Network = Network { address: Ipv4Addr::new(127, 0, 0, 0), mask: Ipv4Addr::new(255, 0, 0, 0) };
const OWN: Network = Network { address: ADDRESS, mask: Ipv4Addr::BROADCAST };
const DNS: u16 = 53;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub address: Ipv4Addr,
    pub mask: Ipv4Addr,
}

/// Redirection concerns only what would leave over the loopback device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Leaves packets to this network as they are.
    Accept(Network),
    RedirectTcp {
        to_port: u16,
    },
    /// Only datagrams to `port`, if it is set.
    RedirectUdp {
        port: Option<u16>,
        to_port: u16,
    },
}

pub fn redirection() -> [Rule; 5] {
    [
        Rule::Accept(LOOPBACK),
        Rule::Accept(OWN),
        Rule::RedirectTcp { to_port: TCP_PORT },
        Rule::RedirectUdp { port: Some(DNS), to_port: DNS_PORT },
        Rule::RedirectUdp { port: None, to_port: CLOSED_PORT },
    ]
}
