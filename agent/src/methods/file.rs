//! Methods of files that do not stream.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::{AgentError, Result};
use crate::files::chmod::chmod_contents;
use crate::files::cross_device_move::move_across;
use crate::files::destination::{Destination, make_dir};
use crate::files::dir::{Dir, stat_path};
use crate::files::info::FileInfo;
use crate::files::mode::Mode;
use crate::files::owner::Owner;
use crate::files::remove_tree::remove_tree;
use crate::files::sandbox_path::SandboxPath;
use crate::files::stat::Kind;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const NEW_DIRECTORY_MODE: u32 = 0o755;

#[derive(Deserialize)]
struct Stat {
    path: String,
    follow: Option<bool>,
}

#[derive(Deserialize)]
struct Mkdir {
    path: String,
    #[serde(default)]
    parents: bool,
    mode: Option<Mode>,
    owner: Option<String>,
}

#[derive(Deserialize)]
struct Move {
    from: String,
    to: String,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Deserialize)]
struct Chmod {
    path: String,
    mode: Mode,
    #[serde(default)]
    recursive: bool,
}

#[derive(Deserialize)]
struct Remove {
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    missing_ok: bool,
}

pub fn stat(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Stat = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    let info = FileInfo::at(path.as_path(), params.follow.unwrap_or(true)).map_err(path.failed("stat"))?;
    Ok(json!(info))
}

pub fn mkdir(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Mkdir = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    let owner = Owner::choose(&agent.args, params.owner.as_deref())?;
    let failed = path.failed("make directory");
    if path.as_path().is_dir() {
        return Ok(json!({ "created": false }));
    }
    let mode = params.mode.map_or(NEW_DIRECTORY_MODE, Mode::bits);
    let destination = Destination::find(path.as_path()).map_err(&failed)?;
    if destination.lacks_parents() && !params.parents {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        return Err(AgentError::hint(failed(error), "set \"parents\": true to make the missing parents"));
    }
    let made = destination.make_parents(owner).map_err(&failed)?;
    let parent = made.as_ref().unwrap_or(&destination.base);
    let (_, created) =
        make_dir(parent, &destination.name, mode, owner).map_err(|error| match error.raw_os_error() {
            // The name belongs to an entry that is not a directory.
            Some(libc::ENOTDIR | libc::ELOOP) => failed(io::Error::from_raw_os_error(libc::EEXIST)),
            _ => failed(error),
        })?;
    Ok(json!({ "created": created }))
}

pub async fn rename(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Move = call.params()?;
    let both = format!("{} to {}", params.from, params.to);
    let from = SandboxPath::resolve(&agent.args, params.from)?;
    let to = SandboxPath::resolve(&agent.args, params.to)?;
    let (from_dir, from_name) = from.entry("move")?;
    let (to_dir, to_name) = to.entry("move to")?;
    let renamed = if params.overwrite {
        from_dir.rename(&from_name, &to_dir, &to_name)
    } else {
        from_dir.rename_to_new(&from_name, &to_dir, &to_name)
    };
    let outcome = match renamed {
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {
            move_across(&from_dir, &from_name, &to_dir, &to_name, params.overwrite).await
        }
        outcome => outcome,
    };
    outcome.map_err(|error| {
        let failure = AgentError::io("move", &both, &error);
        if failure.reason == "file_exists" { failure.hint("set \"overwrite\": true to replace it") } else { failure }
    })?;
    Ok(json!({}))
}

pub async fn chmod(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Chmod = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    let failed = path.failed("change the mode of");
    if params.recursive && path.as_path().is_dir() {
        let dir = Dir::open_for_reading(path.as_path()).map_err(&failed)?;
        chmod_contents(dir, params.mode.bits()).await.map_err(&failed)?;
    }
    std::fs::set_permissions(path.as_path(), Permissions::from_mode(params.mode.bits())).map_err(&failed)?;
    Ok(json!({}))
}

pub async fn remove(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Remove = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    match remove_path(&path, params.recursive).await {
        Err(error) if params.missing_ok && error.reason == "no_such_file" => Ok(json!({})),
        outcome => outcome.map(|()| json!({})),
    }
}

async fn remove_path(path: &SandboxPath, recursive: bool) -> Result<()> {
    let failed = path.failed("remove");
    let (dir, name) = path.entry("remove")?;
    let stat = dir.stat_entry(&name).map_err(&failed)?;
    if stat.kind() != Kind::Directory {
        return dir.remove_file(&name).map_err(&failed);
    }
    if stat_path(Path::new("/"), true).map_err(&failed)?.identity() == stat.identity() {
        return Err(AgentError::invalid("bad_path", format!("cannot remove {path}: it is the root directory")));
    }
    if recursive {
        return remove_tree(&dir, &name).await.map_err(&failed);
    }
    dir.remove_dir(&name).map_err(|error: io::Error| {
        failed(error).hint("set \"recursive\": true to remove a directory with its contents")
    })
}
