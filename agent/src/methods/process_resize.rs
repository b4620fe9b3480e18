use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::process::terminal::Size;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    process: String,
    #[serde(flatten)]
    size: Size,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    agent.processes.get(&params.process)?.resize(params.size.check()?)?;
    Ok(json!({}))
}
