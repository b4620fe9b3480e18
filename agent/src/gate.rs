//! Closed between quiesce and thaw: while it is closed nothing is sent that a checkpoint would cut in two.

use std::cell::Cell;
use tokio::sync::Notify;

pub struct Gate {
    open: Cell<bool>,
    opening: Notify,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: Cell::new(true), opening: Notify::new() }
    }
}

impl Gate {
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
