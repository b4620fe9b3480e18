//! The table of methods: one file each.

mod hello;
mod ping;
mod quiesce;
mod thaw;

use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Code, Result};
use serde_json::Value;
use std::rc::Rc;

/// What `hello` lists; a test holds it equal to what `run` knows.
pub const NAMES: &[&str] = &["ping", "hello", "system.quiesce", "system.thaw"];

pub async fn run(agent: Rc<Agent>, call: Call) -> Result<Value> {
    match call.method.as_str() {
        "ping" => ping::run(),
        "hello" => hello::run(&agent, call),
        "system.quiesce" => quiesce::run(&agent, call).await,
        "system.thaw" => thaw::run(&agent, call),
        unknown => Err(AgentError::new(Code::Unimplemented, "unknown_method", format!("no method {unknown}"))
            .hint("hello lists the methods of this agent")),
    }
}

pub fn works_while_quiesced(method: &str) -> bool {
    matches!(method, "ping" | "hello" | "system.thaw" | "system.quiesce")
}
