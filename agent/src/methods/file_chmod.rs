use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::files::chmod::chmod_contents;
use crate::files::dir::Dir;
use crate::files::mode::Mode;
use crate::files::sandbox_path::SandboxPath;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

#[derive(Deserialize)]
struct Params {
    path: String,
    mode: Mode,
    #[serde(default)]
    recursive: bool,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    let failed = path.failed("change the mode of");
    if params.recursive && path.as_path().is_dir() {
        let dir = Dir::open_for_reading(path.as_path()).map_err(&failed)?;
        chmod_contents(dir, params.mode.bits()).await.map_err(&failed)?;
    }
    std::fs::set_permissions(path.as_path(), Permissions::from_mode(params.mode.bits())).map_err(&failed)?;
    Ok(json!({}))
}
