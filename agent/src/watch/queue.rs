//! Events that wait for a caller's credit; a bounded number, since the code inside makes them and the caller may sleep.

use super::event::Event;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tokio::sync::Notify;

const MAX_EVENTS: usize = 4096;
const MAX_PATH_BYTES: usize = 256 * 1024;

#[derive(Default)]
pub struct Queue {
    events: RefCell<VecDeque<Event>>,
    path_bytes: Cell<usize>,
    /// The last one says `overflow`, and what comes before it has been taken is lost.
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
        // A file written in small pieces is one change to somebody who has not looked yet.
        if matches!(event, Event::Write { .. } | Event::Chmod { .. }) && events.back() == Some(&event) {
            return;
        }
        let path_bytes = self.path_bytes.get() + event.path_bytes();
        if event == Event::overflow() || events.len() >= MAX_EVENTS || path_bytes > MAX_PATH_BYTES {
            self.is_full.set(true);
            events.push_back(Event::overflow());
        } else {
            self.path_bytes.set(path_bytes);
            events.push_back(event);
        }
        self.changed.notify_one();
    }

    pub fn pop(&self) -> Option<Event> {
        let event = self.events.borrow_mut().pop_front()?;
        self.path_bytes.set(self.path_bytes.get() - event.path_bytes());
        if event == Event::overflow() {
            self.is_full.set(false);
        }
        Some(event)
    }

    /// No more events will come.
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
    use crate::watch::event::Path;

    fn create(name: usize) -> Event {
        Event::Create { path: Path(name.to_string().into_bytes()) }
    }

    #[test]
    fn what_does_not_fit_becomes_one_overflow_and_later_events_are_heard_again() {
        let queue = Queue::default();
        for name in 0..MAX_EVENTS + 100 {
            queue.push(create(name));
        }
        for name in 0..MAX_EVENTS {
            assert_eq!(queue.pop(), Some(create(name)));
        }
        assert_eq!(queue.pop(), Some(Event::overflow()));
        assert_eq!(queue.pop(), None);
        queue.push(create(7));
        assert_eq!(queue.pop(), Some(create(7)));
    }

    #[test]
    fn long_paths_fill_it_sooner() {
        let queue = Queue::default();
        for _ in 0..100 {
            queue.push(Event::Create { path: Path(vec![b'x'; 4096]) });
        }
        let popped = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(popped, MAX_PATH_BYTES / 4096 + 1);
    }

    #[test]
    fn repeated_writes_to_one_file_are_one_event() {
        let queue = Queue::default();
        let write = |name: &str| Event::Write { path: Path(name.into()) };
        for event in [write("a"), write("a"), write("b"), write("a")] {
            queue.push(event);
        }
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [write("a"), write("b"), write("a")]);
    }
}
