use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    epoch: Option<u64>,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    if let Some(epoch) = params.epoch {
        agent.epoch.set(epoch);
    }
    agent.thaw();
    agent.forget_languages();
    Ok(json!({}))
}
