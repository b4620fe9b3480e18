//! Tells a caller what changes in a directory, a tree or a file.
//!
//! `inotify` (the kernel's events) → `watcher` (what they mean, with `directories` for where) → `queue` → the caller.

mod directories;
mod event;
mod inotify;
mod queue;
mod watcher;

pub use event::Event;
pub use queue::Queue;
pub use watcher::Watcher;
