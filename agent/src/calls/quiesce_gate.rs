//! Closed from quiesce to thaw. While it is closed the agent starts no frame, so a checkpoint cannot split one.

use std::cell::Cell;
use tokio::sync::Notify;

#[derive(Default)]
pub struct QuiesceGate {
    is_closed: Cell<bool>,
    opening: Notify,
}

impl QuiesceGate {
    pub fn is_open(&self) -> bool {
        !self.is_closed.get()
    }

    pub fn close(&self) {
        self.is_closed.set(true);
    }

    pub fn open(&self) {
        self.is_closed.set(false);
        self.opening.notify_waiters();
    }

    pub async fn opened(&self) {
        loop {
            let opening = self.opening.notified();
            if self.is_open() {
                return;
            }
            opening.await;
        }
    }
}
