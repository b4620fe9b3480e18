//! Requests to the kernel's routing sockets.

use crate::os::{check, own};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const HEADER_BYTES: usize = size_of::<libc::nlmsghdr>();
/// An answer is a header, an error number and the request's header.
const ANSWER_BYTES: usize = 256;

pub struct Request(Vec<u8>);

impl Request {
    /// `head` is the fixed part of a message of this kind, in the byte order of this machine.
    pub fn new(kind: u16, flags: libc::c_int, head: &[u8]) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        // The length follows when the message is complete. The kernel does not need a sequence number or port here.
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(head);
        Self(bytes)
    }

    pub fn attribute(mut self, kind: u16, value: [u8; 4]) -> Self {
        self.0.extend_from_slice(&8u16.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(&value);
        self
    }

    pub fn send(mut self, socket: &OwnedFd) -> io::Result<()> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        let mut answer = [0u8; ANSWER_BYTES];
        // SAFETY: both buffers are valid for their lengths.
        let size = unsafe {
            check(libc::send(socket.as_raw_fd(), self.0.as_ptr().cast(), self.0.len(), 0))?;
            check(libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0))?
        };
        let error = answer[..size as usize].get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|bytes| bytes.try_into().ok());
        match error.map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(number) => Err(io::Error::from_raw_os_error(-number)),
            None => Err(io::Error::other("the kernel's answer is too short")),
        }
    }
}

pub fn open() -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor has no other owner.
    unsafe { own(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE)) }
}
