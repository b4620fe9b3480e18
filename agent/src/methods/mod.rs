//! The table of methods. The file of a method is named for its resource, or for itself if it streams.

mod file;
mod file_list;
mod file_read;
mod file_watch;
mod file_write;
mod net;
mod net_accept;
mod net_serve;
mod port_dial;
mod port_list;
mod process;
mod seed_protocol;
mod system;
mod system_metrics;

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::{AgentError, Code, Result};
use serde_json::Value;
use std::rc::Rc;

macro_rules! methods {
    (($agent:ident, $call:ident) $($name:literal => $run:expr,)*) => {
        /// `hello` lists them.
        pub const NAMES: &[&str] = &[$($name),*];

        pub async fn run($agent: Rc<Agent>, $call: Call) -> Result<Value> {
            match $call.method.as_str() {
                $($name => $run,)*
                unknown => Err(AgentError::new(Code::Unimplemented, "unknown_method", format!("no method {unknown}"))
                    .hint("hello lists the methods of this agent")),
            }
        }
    };
}

methods! {
    (agent, call)
    "ping" => system::ping(),
    "hello" => system::hello(&agent, call, NAMES),
    "system.quiesce" => system::quiesce(&agent, call).await,
    "system.thaw" => system::thaw(&agent, call),
    "exec" => seed_protocol::exec::exec(&agent, call).await,
    "exec_code" => seed_protocol::exec::exec_code(&agent, call).await,
    "process.spawn" => process::spawn(&agent, call),
    "process.output" => process::output(&agent, call).await,
    "process.stdin" => process::stdin(&agent, call).await,
    "process.signal" => process::signal(&agent, call),
    "process.resize" => process::resize(&agent, call),
    "process.wait" => process::wait(&agent, call).await,
    "process.list" => process::list(&agent),
    "process.forget" => process::forget(&agent, call),
    "read_file" => seed_protocol::files::read_file(&agent, call),
    "write_file" => seed_protocol::files::write_file(&agent, call),
    "list_dir" => seed_protocol::files::list_dir(&agent, call).await,
    "file.stat" => file::stat(&agent, call),
    "file.list" => file_list::run(&agent, call).await,
    "file.mkdir" => file::mkdir(&agent, call),
    "file.move" => file::rename(&agent, call).await,
    "file.chmod" => file::chmod(&agent, call).await,
    "file.remove" => file::remove(&agent, call).await,
    "file.read" => file_read::run(&agent, call).await,
    "file.write" => file_write::run(&agent, call).await,
    "file.watch" => file_watch::run(&agent, call).await,
    "system.metrics" => system_metrics::run(),
    "port.dial" => port_dial::run(&agent, call).await,
    "port.list" => port_list::list(&agent),
    "port.watch" => port_list::watch(&agent, call).await,
    "net.serve" => net_serve::run(&agent, call).await,
    "net.accept" => net_accept::run(&agent, call).await,
    "net.refuse" => net::refuse(&agent, call),
    "net.answer" => net::answer(&agent, call),
}

pub fn works_while_quiesced(method: &str) -> bool {
    matches!(method, "ping" | "hello" | "system.thaw" | "system.quiesce")
}
