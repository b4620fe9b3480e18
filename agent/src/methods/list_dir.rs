use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Code, Result};
use crate::files::dir::Dir;
use crate::files::info::FileInfo;
use crate::files::sandbox_path::SandboxPath;
use crate::files::stat::Kind;
use crate::files::walk::{Limits, Visit, Walk};
use crate::limits::MAX_LINE_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};

/// Left for what surrounds the entries in the answer.
const ENVELOPE_BYTES: usize = 1024;

#[derive(Deserialize)]
struct Params {
    path: String,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    let failed = path.failed("list");
    let dir = Dir::open_for_reading(path.as_path()).map_err(&failed)?;
    let mut walk = Walk::new(dir, Limits { depth: 1, ..Limits::default() });
    let (mut entries, mut size) = (Vec::new(), 0);
    while let Some(visit) = walk.next().await.map_err(&failed)? {
        let Visit::Entry(name) = visit else { continue };
        let Ok(info) = FileInfo::of_entry(walk.dir(), &name, name.to_bytes()) else { continue };
        let entry = json!({ "name": info.path, "is_dir": info.kind == Kind::Directory, "size": info.size });
        size += entry.to_string().len() + 1;
        if size > MAX_LINE_BYTES - ENVELOPE_BYTES {
            let message = format!("cannot answer with {path}: it has too many entries for one answer");
            return Err(AgentError::new(Code::FailedPrecondition, "too_large", message)
                .hint("use file.list, which streams any number of entries"));
        }
        entries.push(entry);
    }
    Ok(json!({ "entries": entries }))
}
