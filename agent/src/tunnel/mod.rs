//! A socket of the sandbox carried both ways on a call's stream.

pub mod connect;

use crate::both::both;
use crate::call::Call;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// What a caller may send ahead of what the socket has taken.
const WINDOW_BYTES: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;

pub struct Tunnel<'a> {
    pub call: &'a Call,
    pub socket: AsyncFd<OwnedFd>,
}

/// As the caller sees it.
#[derive(Debug, Default)]
pub struct Carried {
    pub sent: u64,
    pub received: u64,
}

impl Tunnel<'_> {
    /// Until both directions have ended. Each may end on its own; a peer that takes no more but still sends is heard
    /// out before its failure is reported.
    pub async fn carry(&self) -> io::Result<Carried> {
        let (sent, received) = (Cell::new(0), Cell::new(0));
        let refusal = RefCell::new(Ok(()));
        let to_socket = async {
            *refusal.borrow_mut() = self.send(&sent).await;
            Ok(())
        };
        both(to_socket, self.receive(&received)).await?;
        refusal.into_inner()?;
        Ok(Carried { sent: sent.get(), received: received.get() })
    }

    async fn send(&self, sent: &Cell<u64>) -> io::Result<()> {
        self.call.grant(WINDOW_BYTES).await;
        while let Some(bytes) = self.call.receive().await {
            self.write_all(&bytes).await?;
            sent.set(sent.get() + bytes.len() as u64);
            self.call.grant(bytes.len()).await;
        }
        // SAFETY: plain call on an open descriptor. A peer that has closed already makes it fail, and needs no telling.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_WR) };
        Ok(())
    }

    async fn receive(&self, received: &Cell<u64>) -> io::Result<()> {
        loop {
            let credit = self.call.take_credit(READ_BYTES).await;
            let bytes = self.read(credit).await?;
            if bytes.is_empty() {
                self.call.send_end().await;
                return Ok(());
            }
            self.call.stream.add_credit((credit - bytes.len()) as u64);
            received.set(received.get() + bytes.len() as u64);
            self.call.send_data("", bytes).await;
        }
    }

    async fn read(&self, most: usize) -> io::Result<Vec<u8>> {
        loop {
            let mut ready = self.socket.readable().await?;
            // Made only when there is something to read, so that an idle tunnel holds no memory.
            let mut bytes: Vec<u8> = Vec::with_capacity(most + 1);
            let outcome = ready.try_io(|fd| {
                // SAFETY: the vector has room for `most` bytes.
                done(unsafe { libc::recv(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), most, 0) })
            });
            match outcome {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Ok(Ok(size)) => {
                    // SAFETY: the kernel has just filled that many.
                    unsafe { bytes.set_len(size) };
                    if size < most / 2 {
                        bytes.shrink_to(size + 1);
                    }
                    return Ok(bytes);
                }
                Err(_would_block) => {}
            }
        }
    }

    async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut ready = self.socket.writable().await?;
            let outcome = ready.try_io(|fd| {
                // SAFETY: the slice is valid for its length.
                done(unsafe { libc::send(fd.as_raw_fd(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) })
            });
            match outcome {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(size) => rest = &rest[size?..],
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}

fn done(size: isize) -> io::Result<usize> {
    if size < 0 { Err(io::Error::last_os_error()) } else { Ok(size as usize) }
}
