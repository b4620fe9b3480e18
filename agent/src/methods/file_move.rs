use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::files::transfer;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    from: String,
    to: String,
    #[serde(default)]
    overwrite: bool,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let both = format!("{} to {}", params.from, params.to);
    let from = SandboxPath::resolve(agent, params.from)?;
    let to = SandboxPath::resolve(agent, params.to)?;
    let (from_dir, from_name) = from.entry("move")?;
    let (to_dir, to_name) = to.entry("move to")?;
    let renamed = if params.overwrite {
        from_dir.rename(&from_name, &to_dir, &to_name)
    } else {
        from_dir.rename_to_new(&from_name, &to_dir, &to_name)
    };
    let outcome = match renamed {
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {
            transfer::transfer(&from_dir, &from_name, &to_dir, &to_name, params.overwrite).await
        }
        outcome => outcome,
    };
    outcome.map_err(|error| {
        let failure = AgentError::io("move", &both, &error);
        if failure.reason == "file_exists" { failure.hint("give \"overwrite\": true to replace it") } else { failure }
    })?;
    Ok(json!({}))
}
