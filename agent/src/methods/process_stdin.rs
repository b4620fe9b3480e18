use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    process: String,
    offset: Option<u64>,
    #[serde(default)]
    close: bool,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let process = agent.processes.get(&params.process)?;
    let bytes = call.attachment.take().unwrap_or_default();
    let offset = process.stdin.write(&bytes, params.offset, params.close).await?;
    Ok(json!({ "offset": offset }))
}
