//! The table of methods: one file each.

mod exec;
mod exec_code;
mod file_chmod;
mod file_list;
mod file_mkdir;
mod file_move;
mod file_read;
mod file_remove;
mod file_stat;
mod file_watch;
mod file_write;
mod hello;
mod list_dir;
mod ping;
mod port_dial;
mod process_forget;
mod process_list;
mod process_output;
mod process_resize;
mod process_signal;
mod process_spawn;
mod process_stdin;
mod process_wait;
mod quiesce;
mod read_file;
mod system_metrics;
mod thaw;
mod write_file;

use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Code, Result};
use serde_json::Value;
use std::rc::Rc;

/// What `hello` lists; a test holds it equal to what `run` knows.
pub const NAMES: &[&str] = &[
    "ping",
    "hello",
    "system.quiesce",
    "system.thaw",
    "exec",
    "exec_code",
    "process.spawn",
    "process.output",
    "process.stdin",
    "process.signal",
    "process.resize",
    "process.wait",
    "process.list",
    "process.forget",
    "read_file",
    "write_file",
    "list_dir",
    "file.stat",
    "file.list",
    "file.mkdir",
    "file.move",
    "file.chmod",
    "file.remove",
    "file.read",
    "file.write",
    "file.watch",
    "system.metrics",
    "port.dial",
];

pub async fn run(agent: Rc<Agent>, call: Call) -> Result<Value> {
    match call.method.as_str() {
        "ping" => ping::run(),
        "hello" => hello::run(&agent, call),
        "system.quiesce" => quiesce::run(&agent, call).await,
        "system.thaw" => thaw::run(&agent, call),
        "exec" => exec::run(&agent, call).await,
        "exec_code" => exec_code::run(&agent, call).await,
        "process.spawn" => process_spawn::run(&agent, call),
        "process.output" => process_output::run(&agent, call).await,
        "process.stdin" => process_stdin::run(&agent, call).await,
        "process.signal" => process_signal::run(&agent, call),
        "process.resize" => process_resize::run(&agent, call),
        "process.wait" => process_wait::run(&agent, call).await,
        "process.list" => process_list::run(&agent),
        "process.forget" => process_forget::run(&agent, call),
        "read_file" => read_file::run(&agent, call),
        "write_file" => write_file::run(&agent, call),
        "list_dir" => list_dir::run(&agent, call).await,
        "file.stat" => file_stat::run(&agent, call),
        "file.list" => file_list::run(&agent, call).await,
        "file.mkdir" => file_mkdir::run(&agent, call),
        "file.move" => file_move::run(&agent, call).await,
        "file.chmod" => file_chmod::run(&agent, call).await,
        "file.remove" => file_remove::run(&agent, call).await,
        "file.read" => file_read::run(&agent, call).await,
        "file.write" => file_write::run(&agent, call).await,
        "file.watch" => file_watch::run(&agent, call).await,
        "system.metrics" => system_metrics::run(),
        "port.dial" => port_dial::run(&agent, call).await,
        unknown => Err(AgentError::new(Code::Unimplemented, "unknown_method", format!("no method {unknown}"))
            .hint("hello lists the methods of this agent")),
    }
}

pub fn works_while_quiesced(method: &str) -> bool {
    matches!(method, "ping" | "hello" | "system.thaw" | "system.quiesce")
}
