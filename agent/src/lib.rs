//! The Sandpiper agent: PID 1 of every instance.
//!
//! Each module uses only those before it: `error`, `args`, `os`, `redirect`, `wire`, `calls`, `files`, `watch`, `process`,
//! `init`, `net`, `agent`, `methods`, `channel`, `startup`. `test/architecture/agent-modules.test.ts` enforces this.

pub mod agent;
pub mod args;
pub mod calls;
pub mod channel;
pub mod error;
pub mod files;
pub mod init;
pub mod methods;
pub mod net;
pub mod os;
pub mod process;
pub mod redirect;
pub mod startup;
pub mod watch;
pub mod wire;
