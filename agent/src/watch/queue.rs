//! Events that wait for the caller's credit. Their number is bounded, because the code inside causes them.

use super::event::{Event, Kind};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tokio::sync::Notify;

const MAX_EVENTS: usize = 4096;
const MAX_PATH_BYTES: usize = 256 * 1024;

#[derive(Default)]
pub struct Queue {
    events: RefCell<VecDeque<Event>>,
    path_bytes: Cell<usize>,
    /// The last event is an overflow. New events are lost until the caller takes it.
    is_full: Cell<bool>,
    is_closed: Cell<bool>,
    changed: Notify,
}

impl Queue {
    pub fn push(&self, event: Event) {
        if self.is_full.get() {
            return;
        }
        let mut events = self.events.borrow_mut();
        // Many small writes to a file are one change.
        if matches!(event.kind, Kind::Write | Kind::Chmod) && events.back() == Some(&event) {
            return;
        }
        let path_bytes = self.path_bytes.get() + event.path_bytes();
        if event.kind == Kind::Overflow || events.len() >= MAX_EVENTS || path_bytes > MAX_PATH_BYTES {
            self.is_full.set(true);
            events.push_back(Event::of_top(Kind::Overflow));
        } else {
            self.path_bytes.set(path_bytes);
            events.push_back(event);
        }
        self.changed.notify_one();
    }

    pub fn pop(&self) -> Option<Event> {
        let event = self.events.borrow_mut().pop_front()?;
        self.path_bytes.set(self.path_bytes.get() - event.path_bytes());
        if event.kind == Kind::Overflow {
            self.is_full.set(false);
        }
        Some(event)
    }

    /// Ends the queue after the events it holds.
    pub fn close(&self) {
        self.is_closed.set(true);
        self.changed.notify_one();
    }

    /// False when the queue is closed and empty.
    pub async fn filled(&self) -> bool {
        loop {
            if !self.events.borrow().is_empty() {
                return true;
            }
            if self.is_closed.get() {
                return false;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(name: usize) -> Event {
        Event::new(Kind::Create, name.to_string().into_bytes())
    }

    #[test]
    fn replaces_excess_events_by_one_overflow_and_then_accepts_new_ones() {
        let queue = Queue::default();
        for name in 0..MAX_EVENTS + 100 {
            queue.push(create(name));
        }
        for name in 0..MAX_EVENTS {
            assert_eq!(queue.pop(), Some(create(name)));
        }
        assert_eq!(queue.pop(), Some(Event::of_top(Kind::Overflow)));
        assert_eq!(queue.pop(), None);
        queue.push(create(7));
        assert_eq!(queue.pop(), Some(create(7)));
    }

    #[test]
    fn holds_fewer_events_with_long_paths() {
        let queue = Queue::default();
        for _ in 0..100 {
            queue.push(Event::new(Kind::Create, vec![b'x'; 4096]));
        }
        let popped = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(popped, MAX_PATH_BYTES / 4096 + 1);
    }

    #[test]
    fn joins_repeated_writes_to_one_file() {
        let queue = Queue::default();
        let write = |name: &str| Event::new(Kind::Write, name.into());
        for event in [write("a"), write("a"), write("b"), write("a")] {
            queue.push(event);
        }
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [write("a"), write("b"), write("a")]);
    }
}
