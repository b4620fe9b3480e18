use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Result};
use crate::files::dir::stat_path;
use crate::files::removal;
use crate::files::sandbox_path::SandboxPath;
use crate::files::stat::Kind;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

#[derive(Deserialize)]
struct Params {
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    missing_ok: bool,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    match remove(&path, params.recursive).await {
        Err(error) if params.missing_ok && error.reason == "no_such_file" => Ok(json!({})),
        outcome => outcome.map(|()| json!({})),
    }
}

async fn remove(path: &SandboxPath, recursive: bool) -> Result<()> {
    let failed = path.failed("remove");
    let (dir, name) = path.entry("remove")?;
    let stat = dir.stat_entry(&name).map_err(&failed)?;
    if stat.kind() != Kind::Directory {
        return dir.remove_file(&name).map_err(&failed);
    }
    if stat_path(Path::new("/"), true).map_err(&failed)?.identity() == stat.identity() {
        return Err(AgentError::invalid("bad_path", format!("{path} is the root directory, which cannot be removed")));
    }
    if recursive {
        return removal::remove_tree(&dir, &name).await.map_err(&failed);
    }
    dir.remove_dir(&name).map_err(|error: io::Error| {
        failed(error).hint("give \"recursive\": true to remove a directory with its contents")
    })
}
