use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use serde_json::{Value, json};

pub async fn run(agent: &Agent, call: Call) -> Result<Value> {
    agent.quiesce();
    call.outbox.flushed().await;
    Ok(json!({}))
}
