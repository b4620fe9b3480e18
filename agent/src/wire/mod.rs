//! What travels on a channel: `byte_stream` ← `frame` ← `message`.

pub mod byte_stream;
pub mod frame;
pub mod json_size;
pub mod limits;
pub mod message;
