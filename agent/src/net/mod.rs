//! The sandbox's connections to the outside. Its network stack redirects them to the agent, which announces each one to the
//! caller of `net.serve`; the caller decides.

pub mod datagrams;
pub mod dns;
pub mod dns_server;
pub mod guest_network;
pub mod listen;
pub mod ports;
pub mod socket;
pub mod socket_owner;
pub mod socket_table;
pub mod stand_ins;
pub mod subscription;
