//! Processes: `launch` starts one, `reaper` collects its exit, `table` remembers it, `output` keeps what it wrote.

pub mod command;
pub mod environment;
pub mod exit_status;
pub mod info;
pub mod journal;
pub mod language;
pub mod launch;
mod launch_error;
pub mod memory_guard;
mod memory_victim;
mod oom_kills;
pub mod output;
mod pipe;
mod prepared_pipes;
#[allow(clippy::module_inception)]
pub mod process;
mod program;
pub mod reaper;
pub mod segments;
pub mod service;
mod shell;
pub mod signal;
mod spawn;
mod spill;
mod stdin;
mod stdio;
pub mod table;
pub mod terminal;
pub mod tree;
