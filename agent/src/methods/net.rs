//! The methods of the network that are one request and one answer.

use crate::calls::call::Call;
use crate::error::{AgentError, Code, Result};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Refuse {
    #[serde(rename = "flow")]
    _flow: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    StandIn,
    Empty,
    NameError,
    Refused,
    ServerFailure,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "query")]
    _query: u64,
    #[serde(rename = "outcome")]
    _outcome: Outcome,
}

pub fn refuse(mut call: Call) -> Result<Value> {
    call.params::<Refuse>()?;
    Ok(json!({}))
}

pub fn answer(mut call: Call) -> Result<Value> {
    call.params::<Answer>()?;
    Ok(json!({}))
}

pub fn no_such_flow(flow: u64) -> AgentError {
    AgentError::new(Code::NotFound, "no_such_flow", format!("flow {flow} does not wait"))
}
