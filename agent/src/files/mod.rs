//! Files of the sandbox.
//!
//! The code inside may rename, replace or delete anything at any moment. So an operation with more than one step keeps the
//! directory open and names entries relative to it: the same path could lead elsewhere the second time.

pub mod atomic_write;
pub mod chmod;
mod copy;
pub mod cross_device_move;
pub mod destination;
pub mod dir;
mod entries;
pub mod file_reader;
pub mod info;
pub mod mode;
pub mod owner;
pub mod remove_tree;
pub mod sandbox_path;
mod sorted_names;
pub mod stat;
pub mod temp_entry;
mod time_slice;
mod tree_cursor;
pub mod walk;
