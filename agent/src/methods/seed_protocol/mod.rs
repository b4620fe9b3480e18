//! The methods of the seed protocol, the smallest that a caller can speak: one request, one answer as text, no streams.
//! The node does not call them.

pub mod exec;
pub mod files;
