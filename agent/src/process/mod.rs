//! Processes: `launch` starts one, `reaper` sees it end, `table` remembers it, `output` keeps what it wrote.

pub mod collect;
pub mod command;
pub mod environment;
pub mod exit_status;
pub mod info;
pub mod journal;
pub mod language;
pub mod launch;
pub mod launch_error;
pub mod memory_kills;
pub mod output;
pub mod pipe;
#[allow(clippy::module_inception)]
pub mod process;
pub mod program;
pub mod reaper;
pub mod segments;
pub mod signal;
pub mod spare_pipes;
pub mod spawn;
pub mod spill;
pub mod stdin;
pub mod stdio;
pub mod table;
pub mod terminal;
pub mod tree;
