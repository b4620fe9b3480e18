//! The kernel's table of TCP sockets.

use super::socket_owner::Socket;
use crate::os::small_file::read_small_file;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const LISTEN: u8 = 0x0a;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    state: u8,
    pub uid: u32,
    pub inode: u64,
}

impl Row {
    pub fn listens(&self) -> bool {
        self.state == LISTEN
    }

    pub fn socket(&self) -> Socket {
        Socket { inode: self.inode, uid: self.uid }
    }
}

pub fn tcp_v4() -> io::Result<Vec<Row>> {
    Ok(parse(&read_small_file("/proc/net/tcp")?))
}

/// Empty without IPv6.
pub fn tcp_v6() -> Vec<Row> {
    read_small_file("/proc/net/tcp6").map(|text| parse(&text)).unwrap_or_default()
}

fn parse(text: &str) -> Vec<Row> {
    text.lines().skip(1).filter_map(parse_row).collect()
}

fn parse_row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace();
    let (local, remote) = (parse_address(fields.nth(1)?)?, parse_address(fields.next()?)?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let uid = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some(Row { local, remote, state, uid, inode })
}

/// `0100007F:1F90`: words of the address in the byte order of the machine, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let octets: [u8; 16] = words.concat().try_into().ok()?;
            // A socket for both versions shows IPv4 addresses as mapped ones.
            IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0        17 1 0000000000000000 0
   2: 0200000A:DA1D 070012C6:01BB 01 00000000:00000000 00:00000000 00000000  1000        0        3 1 0000000000000000 0
  bad row
   4: 0100007F:1F90 0100007F:DA1D
";
    const TABLE_6: &str = "  sl  local_address                         remote_address                        st
   1: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 0:0 00:0 0  1000  0  2 1 0 0 0 0 0 -1
   2: 0000000000000000FFFF00000200000A:DA1D 0000000000000000FFFF0000070012C6:01BB 01 0:0 00:0 0  1000  0  3 1 0 0 0 0 0 -1";

    #[test]
    fn reads_addresses_states_and_inodes_and_skips_damaged_rows() {
        let rows = parse(TABLE);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].local, rows[0].inode), ("127.0.0.1:8080".parse().unwrap(), 17));
        assert_eq!(rows[0].uid, 1000);
        assert!(rows[0].listens() && !rows[1].listens());
        assert_eq!(rows[1].remote, "198.18.0.7:443".parse().unwrap());
    }

    #[test]
    fn reads_ipv6_and_shows_mapped_addresses_as_ipv4() {
        let rows = parse(TABLE_6);
        assert_eq!(rows[0].local, "[::1]:8081".parse().unwrap());
        assert_eq!(rows[1].remote, "198.18.0.7:443".parse().unwrap());
    }
}
