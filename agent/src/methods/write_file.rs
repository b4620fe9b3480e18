use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::files::atomic_write::AtomicWrite;
use crate::files::sandbox_path::SandboxPath;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    path: String,
    content: String,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let mut write = AtomicWrite::begin(agent, SandboxPath::resolve(agent, params.path)?, None, None)?;
    write.append(params.content.as_bytes())?;
    write.finish()?;
    Ok(json!({ "success": true }))
}
