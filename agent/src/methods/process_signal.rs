use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::process::signal;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    process: String,
    signal: String,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Target {
    #[default]
    Process,
    Tree,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let process = agent.processes.get(&params.process)?;
    let signal = signal::parse(&params.signal)?;
    match params.target {
        Target::Process => process.signal(signal)?,
        Target::Tree => process.signal_tree(signal),
    }
    Ok(json!({}))
}
