use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::files::info::FileInfo;
use crate::files::sandbox_path::SandboxPath;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    path: String,
    follow: Option<bool>,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    let info = FileInfo::at(path.as_path(), params.follow.unwrap_or(true)).map_err(path.failed("stat"))?;
    Ok(json!(info))
}
