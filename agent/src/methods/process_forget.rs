use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    process: String,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let Params { process } = call.params()?;
    agent.processes.forget(&process)?;
    Ok(json!({}))
}
