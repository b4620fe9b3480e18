//! Copies both directions of a socket on the call's stream.

use super::call::Call;
use super::try_join::try_join;
use crate::os::{descriptor, read_into};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// What a caller may send before the socket has taken it.
const WINDOW_BYTES: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;

pub struct Tunnel<'a> {
    pub call: &'a Call,
    pub socket: &'a AsyncFd<OwnedFd>,
}

impl Tunnel<'_> {
    /// Runs until both directions have ended. Each can end alone: if the peer refuses bytes but still sends, the caller
    /// gets all of them before the error.
    pub async fn run(&self) -> io::Result<Value> {
        let (sent, received) = (Cell::new(0), Cell::new(0));
        let refusal = RefCell::new(Ok(()));
        let to_socket = async {
            *refusal.borrow_mut() = self.send(&sent).await;
            Ok(())
        };
        try_join(to_socket, self.receive(&received)).await?;
        refusal.into_inner()?;
        Ok(json!({ "sent": sent.get(), "received": received.get() }))
    }

    async fn send(&self, sent: &Cell<u64>) -> io::Result<()> {
        self.call.grant(WINDOW_BYTES).await;
        while let Some(bytes) = self.call.receive().await {
            self.write_all(&bytes).await?;
            sent.set(sent.get() + bytes.len() as u64);
            self.call.grant(bytes.len()).await;
        }
        // Fails when the peer has already closed, which is fine.
        // SAFETY: plain call on an open descriptor.
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
            // Allocated only when bytes are available, so that an idle tunnel holds no memory.
            let mut bytes: Vec<u8> = Vec::with_capacity(most + 1);
            if let Ok(outcome) = ready.try_io(|fd| read_into(fd.as_raw_fd(), &mut bytes, most)) {
                let size = outcome?;
                if size < most / 2 {
                    bytes.shrink_to(size + 1);
                }
                return Ok(bytes);
            }
        }
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[descriptor::write_some(self.socket, bytes).await?..];
        }
        Ok(())
    }
}
