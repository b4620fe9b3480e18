//! The NAT table of x_tables, which gVisor copies and which needs no program in the image.

use super::rule::{Network, Rule};
use crate::os::{check, own};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

// Numbers of the kernel's interface that the libc crate does not have.
const SET_REPLACE: libc::c_int = 64;
const GET_INFO: libc::c_int = 64;
const NAME_BYTES: usize = 32;
const ENTRY_BYTES: usize = 112;
const HOOKS: usize = 5;
const ACCEPT: i32 = -2;
const PORT_SPECIFIED: u32 = 2;
/// Where everything leaves that has no route of its own. An engine in a virtual machine has other devices, for its
/// containers.
const DEVICE: &[u8; 3] = b"lo\0";

/// The chains in the order of their hooks, of which the third is FORWARD.
const CHAINS: [Chain; 4] = [
    Chain { hook: 0, is_output: false },
    Chain { hook: 1, is_output: false },
    Chain { hook: 3, is_output: true },
    Chain { hook: 4, is_output: false },
];

struct Chain {
    hook: usize,
    is_output: bool,
}

/// `struct ipt_getinfo`
#[repr(C)]
struct Info {
    name: [u8; NAME_BYTES],
    valid_hooks: u32,
    hook_entry: [u32; HOOKS],
    underflow: [u32; HOOKS],
    entries: u32,
    size: u32,
}

/// Replaces the whole table: these rules in OUTPUT, and none in the other chains.
pub fn replace_output(rules: &[Rule]) -> io::Result<()> {
    // SAFETY: the new descriptor has no other owner.
    let socket = unsafe { own(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)) }?;
    // The kernel writes a counter for each entry that it drops.
    let mut counters = vec![[0u64; 2]; entries_now(&socket)? as usize];
    let message = Table::new(rules).message(&mut counters);
    // SAFETY: the message is valid for its length, and holds the address of the counters, which outlive the call.
    check(unsafe {
        let length = message.len() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_IP, SET_REPLACE, message.as_ptr().cast(), length)
    })
    .map(drop)
}

fn entries_now(socket: &OwnedFd) -> io::Result<u32> {
    let mut info =
        Info { name: table_name(), valid_hooks: 0, hook_entry: [0; HOOKS], underflow: [0; HOOKS], entries: 0, size: 0 };
    let mut length = size_of::<Info>() as libc::socklen_t;
    // SAFETY: the structure has the length that is passed, and both are writable.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_IP, GET_INFO, (&raw mut info).cast(), &raw mut length)
    })?;
    Ok(info.entries)
}

/// The entries of a table, with the positions of its chains.
#[derive(Default)]
struct Table {
    bytes: Vec<u8>,
    entries: u32,
    valid_hooks: u32,
    hook_entry: [u32; HOOKS],
    underflow: [u32; HOOKS],
}

impl Table {
    fn new(output: &[Rule]) -> Self {
        let mut table = Self::default();
        for Chain { hook, is_output } in CHAINS {
            table.valid_hooks |= 1 << hook;
            table.hook_entry[hook] = table.bytes.len() as u32;
            for rule in output.iter().filter(|_| is_output) {
                table.push(rule);
            }
            table.underflow[hook] = table.bytes.len() as u32;
            table.push_entry(None, 0, &[], &verdict(ACCEPT));
        }
        table.push_entry(None, 0, &[], &extension("ERROR", padded(b"ERROR", 30)));
        table
    }

    fn push(&mut self, rule: &Rule) {
        match *rule {
            Rule::Accept(network) => self.push_entry(Some(network), 0, &[], &verdict(ACCEPT)),
            Rule::RedirectTcp { to_port } => self.push_entry(None, libc::IPPROTO_TCP, &[], &redirect(to_port)),
            Rule::RedirectUdp { port, to_port } => {
                let matches = port.map(udp_port).unwrap_or_default();
                self.push_entry(None, libc::IPPROTO_UDP, &matches, &redirect(to_port));
            }
        }
    }

    /// `struct ipt_entry`, its matches and its target. Protocol 0 means any, on any device.
    fn push_entry(&mut self, network: Option<Network>, protocol: libc::c_int, matches: &[u8], target: &[u8]) {
        let any = Network { address: Ipv4Addr::UNSPECIFIED, mask: Ipv4Addr::UNSPECIFIED };
        let Network { address, mask } = network.unwrap_or(any);
        let target_at = ENTRY_BYTES + matches.len();
        let mut entry = [0; ENTRY_BYTES];
        entry[4..8].copy_from_slice(&address.octets());
        entry[12..16].copy_from_slice(&mask.octets());
        if protocol != 0 {
            entry[32..35].copy_from_slice(DEVICE);
            entry[64..67].fill(u8::MAX);
        }
        entry[80..82].copy_from_slice(&(protocol as u16).to_ne_bytes());
        entry[88..90].copy_from_slice(&(target_at as u16).to_ne_bytes());
        entry[90..92].copy_from_slice(&((target_at + target.len()) as u16).to_ne_bytes());
        self.bytes.extend([&entry, matches, target].concat());
        self.entries += 1;
    }

    /// `struct ipt_replace` and the entries.
    fn message(&self, counters: &mut [[u64; 2]]) -> Vec<u8> {
        let mut message = table_name().to_vec();
        let numbers = [self.valid_hooks, self.entries, self.bytes.len() as u32].into_iter();
        let numbers = numbers.chain(self.hook_entry).chain(self.underflow).chain([counters.len() as u32]);
        message.extend(numbers.flat_map(u32::to_ne_bytes));
        message.extend((counters.as_mut_ptr() as usize).to_ne_bytes());
        message.extend_from_slice(&self.bytes);
        message
    }
}

fn table_name() -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    name[..3].copy_from_slice(b"nat");
    name
}

/// A standard target.
fn verdict(verdict: i32) -> Vec<u8> {
    extension("", verdict.to_ne_bytes().to_vec())
}

/// A REDIRECT target: `struct nf_nat_ipv4_multi_range_compat` with one range.
fn redirect(to_port: u16) -> Vec<u8> {
    let numbers = [1, PORT_SPECIFIED, 0, 0].into_iter().flat_map(u32::to_ne_bytes);
    extension("REDIRECT", numbers.chain(to_port.to_be_bytes()).chain(to_port.to_be_bytes()).collect())
}

/// A match of UDP with any source port and one destination port: `struct xt_udp`.
fn udp_port(port: u16) -> Vec<u8> {
    let ports = [0, u16::MAX, port, port].into_iter().flat_map(u16::to_ne_bytes);
    extension("udp", ports.chain([0, 0]).collect())
}

/// The header of a match or target, and its data. The kernel aligns both to eight bytes.
fn extension(name: &str, data: Vec<u8>) -> Vec<u8> {
    const HEADER_BYTES: usize = 32;
    let size = (HEADER_BYTES + data.len()).next_multiple_of(8);
    let header = [&(size as u16).to_ne_bytes(), padded(name.as_bytes(), HEADER_BYTES - 2).as_slice()].concat();
    padded(&[header, data].concat(), size)
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(size, 0);
    padded
}
