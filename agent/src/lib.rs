//! The Sandpiper agent: PID 1 of every instance.
//!
//! `frame` ← `message` ← `session` (one caller) ← `methods` (one file each) ← `channel` (how callers come) ← `main`.

pub mod agent;
pub mod args;
pub mod both;
pub mod call;
pub mod channel;
pub mod descriptor;
pub mod error;
pub mod files;
pub mod frame;
pub mod gate;
pub mod init;
pub mod json_text;
pub mod limits;
pub mod log;
pub mod memory;
pub mod message;
pub mod methods;
pub mod metrics;
pub mod outbox;
pub mod process;
pub mod relay;
pub mod session;
pub mod startup;
pub mod tunnel;
pub mod user;
pub mod watch;
pub mod window;
