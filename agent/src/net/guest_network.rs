//! The state of the network that outlives its callers. It is part of a checkpoint.

use super::stand_ins::StandIns;
use super::subscription::Subscription;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Leaves room for other calls on the channel.
const MAX_ACCEPTED: usize = 768;

#[derive(Default)]
pub struct GuestNetwork {
    /// Whether the agent listens for redirected connections.
    pub is_redirected: Cell<bool>,
    pub stand_ins: RefCell<StandIns>,
    subscription: RefCell<Option<Rc<Subscription>>>,
    last_id: Cell<u64>,
    accepted: Rc<Cell<usize>>,
}

impl GuestNetwork {
    /// Without one, everything is refused.
    pub fn subscription(&self) -> Option<Rc<Subscription>> {
        self.subscription.borrow().clone()
    }

    /// Replaces an earlier subscription. It lasts as long as the result.
    pub fn subscribe(self: &Rc<Self>) -> Subscribed {
        let subscription = Rc::<Subscription>::default();
        if let Some(earlier) = self.subscription.replace(Some(Rc::clone(&subscription))) {
            earlier.replace();
        }
        Subscribed { network: Rc::clone(self), subscription }
    }

    /// An id that no flow or query had before.
    pub fn new_id(&self) -> u64 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    /// Counts an accepted flow until the result is dropped; None if too many are open.
    pub fn count_accepted(&self) -> Option<Accepted> {
        if self.accepted.get() >= MAX_ACCEPTED {
            return None;
        }
        self.accepted.set(self.accepted.get() + 1);
        Some(Accepted(Rc::clone(&self.accepted)))
    }
}

pub struct Accepted(Rc<Cell<usize>>);

impl Drop for Accepted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

pub struct Subscribed {
    network: Rc<GuestNetwork>,
    pub subscription: Rc<Subscription>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let mut current = self.network.subscription.borrow_mut();
        if current.as_ref().is_some_and(|current| Rc::ptr_eq(current, &self.subscription)) {
            *current = None;
        }
    }
}
