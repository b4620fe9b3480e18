use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    process: String,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let Params { process } = call.params()?;
    let process = agent.processes.get(&process)?;
    let (status, duration) = process.wait().await;
    Ok(json!({
        "status": status.to_json(),
        "duration_ms": duration.as_micros() as f64 / 1000.0,
        "end_offset": process.output.ended_at(),
    }))
}
