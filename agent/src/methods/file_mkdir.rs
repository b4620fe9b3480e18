use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Result};
use crate::files::destination::{Destination, make_dir};
use crate::files::mode::Mode;
use crate::files::owner::Owner;
use crate::files::sandbox_path::SandboxPath;
use serde::Deserialize;
use serde_json::{Value, json};

const NEW_DIRECTORY_MODE: u32 = 0o755;

#[derive(Deserialize)]
struct Params {
    path: String,
    #[serde(default)]
    parents: bool,
    mode: Option<Mode>,
    owner: Option<String>,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    let owner = Owner::choose(agent, params.owner.as_deref())?;
    let failed = path.failed("make directory");
    if path.as_path().is_dir() {
        return Ok(json!({ "created": false }));
    }
    let mode = params.mode.map_or(NEW_DIRECTORY_MODE, Mode::bits);
    let destination = Destination::find(path.as_path()).map_err(&failed)?;
    if destination.lacks_parents() && !params.parents {
        let error = std::io::Error::from_raw_os_error(libc::ENOENT);
        return Err(AgentError::hint(failed(error), "give \"parents\": true to make missing parents as well"));
    }
    let made = destination.make_parents(owner).map_err(&failed)?;
    let parent = made.as_ref().unwrap_or(&destination.base);
    let (_, created) =
        make_dir(parent, &destination.name, mode, owner).map_err(|error| match error.raw_os_error() {
            // Its name is taken by something that is no directory.
            Some(libc::ENOTDIR | libc::ELOOP) => failed(std::io::Error::from_raw_os_error(libc::EEXIST)),
            _ => failed(error),
        })?;
    Ok(json!({ "created": created }))
}
