use crate::agent::Agent;
use crate::error::Result;
use crate::process::info;
use serde_json::{Value, json};

pub fn run(agent: &Agent) -> Result<Value> {
    Ok(json!({ "processes": info::describe_all(&agent.processes.all()) }))
}
