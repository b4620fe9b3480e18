use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Code, Result};
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
    let process = agent.processes.get(&params.process)?;
    let Some(terminal) = &process.terminal else {
        let message = format!("cannot resize process {:?}: it has no terminal", process.id);
        return Err(AgentError::new(Code::FailedPrecondition, "no_terminal", message));
    };
    terminal.resize(params.size.check()?)?;
    Ok(json!({}))
}
