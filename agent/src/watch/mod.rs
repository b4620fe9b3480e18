//! Reports changes in a directory, a tree or a file.
//!
//! `inotify` reads the kernel's events, `watcher` interprets them with the help of `directories`, and `queue` holds them
//! for the caller.

mod directories;
mod event;
mod inotify;
mod queue;
mod watcher;

pub use queue::Queue;
pub use watcher::Watcher;
