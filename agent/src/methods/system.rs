//! Methods about the agent itself.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::Result;
use crate::process::info;
use crate::wire::limits::PROTOCOL_GENERATION;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Hello {
    /// Required but unused: a caller of any generation adapts to this agent.
    #[serde(rename = "generation")]
    _generation: u32,
}

#[derive(Deserialize)]
struct Thaw {
    epoch: Option<u64>,
}

pub fn ping() -> Result<Value> {
    Ok(json!({ "pong": true }))
}

pub fn hello(agent: &Agent, mut call: Call, methods: &[&str]) -> Result<Value> {
    call.params::<Hello>()?;
    Ok(json!({
        "generation": PROTOCOL_GENERATION,
        "version": env!("CARGO_PKG_VERSION"),
        "boot_id": agent.boot_id,
        "epoch": agent.epoch.get(),
        "methods": methods,
        "languages": agent.languages(),
        "processes": info::describe_all(&agent.processes.all()),
    }))
}

pub async fn quiesce(agent: &Agent, call: Call) -> Result<Value> {
    agent.quiesce();
    call.outbox.flushed().await;
    Ok(json!({}))
}

pub fn thaw(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Thaw = call.params()?;
    if let Some(epoch) = params.epoch {
        agent.epoch.set(epoch);
    }
    agent.thaw();
    agent.forget_languages();
    Ok(json!({}))
}
