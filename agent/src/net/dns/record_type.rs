//! Types of DNS records.

use std::fmt::{self, Display};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordType(pub u16);

impl RecordType {
    pub const A: Self = Self(1);
    pub const PTR: Self = Self(12);
    pub const OPT: Self = Self(41);

    fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "A",
            2 => "NS",
            5 => "CNAME",
            6 => "SOA",
            12 => "PTR",
            13 => "HINFO",
            15 => "MX",
            16 => "TXT",
            28 => "AAAA",
            29 => "LOC",
            33 => "SRV",
            35 => "NAPTR",
            39 => "DNAME",
            43 => "DS",
            44 => "SSHFP",
            46 => "RRSIG",
            47 => "NSEC",
            48 => "DNSKEY",
            52 => "TLSA",
            64 => "SVCB",
            65 => "HTTPS",
            251 => "IXFR",
            252 => "AXFR",
            255 => "ANY",
            256 => "URI",
            257 => "CAA",
            _ => return None,
        })
    }
}

/// As in zone files (RFC 3597).
impl Display for RecordType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "TYPE{}", self.0),
        }
    }
}
