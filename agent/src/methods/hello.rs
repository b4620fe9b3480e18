use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::limits::PROTOCOL_GENERATION;
use crate::process::info;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    /// The caller's; older and newer callers are served alike, since they adapt to ours.
    #[serde(rename = "generation")]
    _generation: u32,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    call.params::<Params>()?;
    Ok(json!({
        "generation": PROTOCOL_GENERATION,
        "version": env!("CARGO_PKG_VERSION"),
        "boot_id": agent.boot_id,
        "epoch": agent.epoch.get(),
        "methods": super::NAMES,
        "languages": agent.languages(),
        "processes": info::describe_all(&agent.processes.all()),
    }))
}
