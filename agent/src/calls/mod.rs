//! One call, its stream, and the queue that its answer leaves through.

pub mod call;
pub mod json_lines;
pub mod outbox;
pub mod quiesce_gate;
pub mod try_join;
pub mod tunnel;
pub mod window;
