use crate::error::{AgentError, Result};
use crate::metrics::Metrics;
use serde_json::{Value, json};

pub fn run() -> Result<Value> {
    let metrics = Metrics::read().map_err(|error| AgentError::io("read", "the system's counters", &error))?;
    Ok(json!(metrics))
}
