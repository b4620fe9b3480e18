//! Files of the sandbox.
//!
//! The code inside may rename, replace or delete anything at any moment, so whatever takes more than one step holds
//! the directory open and names entries relative to it, never by a path that could lead elsewhere the second time.

pub mod atomic_write;
pub mod chmod;
pub mod copy;
pub mod descent;
pub mod destination;
pub mod dir;
pub mod dir_changes;
pub mod entries;
pub mod info;
pub mod json_lines;
pub mod mode;
pub mod names;
pub mod open_dir;
pub mod owner;
pub mod pace;
pub mod removal;
pub mod sandbox_path;
pub mod small_file;
pub mod source;
pub mod stat;
pub mod temp_file;
pub mod temp_tree;
pub mod transfer;

pub mod walk;
