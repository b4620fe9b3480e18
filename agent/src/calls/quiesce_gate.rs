//! Closed from quiesce to thaw. While it is closed the agent starts no frame, so a checkpoint cannot split one.

use std::cell::Cell;
use tokio::sync::Notify;

pub struct QuiesceGate {
    open: Cell<bool>,
    opening: Notify,
}

impl Default for QuiesceGate {
    fn default() -> Self {
        Self { open: Cell::new(true), opening: Notify::new() }
    }
}

impl QuiesceGate {
    pub fn is_open(&self) -> bool {
        self.open.get()
    }

    pub fn close(&self) {
        self.open.set(false);
    }

    pub fn open(&self) {
        self.open.set(true);
        self.opening.notify_waiters();
    }

    pub async fn opened(&self) {
        loop {
            let opening = self.opening.notified();
            if self.open.get() {
                return;
            }
            opening.await;
        }
    }
}
