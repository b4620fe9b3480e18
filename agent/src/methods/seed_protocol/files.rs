//! `read_file`, `write_file` and `list_dir`: small files and directories in one answer.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::{AgentError, Code, Result};
use crate::files::atomic_write::AtomicWrite;
use crate::files::dir::Dir;
use crate::files::file_reader::FileReader;
use crate::files::info::FileInfo;
use crate::files::sandbox_path::SandboxPath;
use crate::files::stat::Kind;
use crate::files::walk::{Limits, Visit, Walk};
use crate::wire::limits::MAX_LINE_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};

const MAX_TEXT_BYTES: usize = MAX_LINE_BYTES / 2;
/// For the part of an answer around its content.
const ENVELOPE_BYTES: usize = 1024;

#[derive(Deserialize)]
struct Named {
    path: String,
}

#[derive(Deserialize)]
struct WriteFile {
    path: String,
    content: String,
}

pub fn read_file(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Named = call.params()?;
    let shown = params.path.clone();
    let refuse = |reason, why: &str| {
        AgentError::new(Code::FailedPrecondition, reason, format!("cannot return {shown} in one answer: {why}"))
            .hint("use file.read, which streams any contents")
    };
    let mut source = FileReader::open(SandboxPath::resolve(&agent.args, params.path)?, 0)?;
    let mut bytes = Vec::new();
    loop {
        let piece = source.read(MAX_TEXT_BYTES + 1 - bytes.len())?;
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_TEXT_BYTES {
            return Err(refuse("too_large", "it is larger than 512 KiB"));
        }
    }
    let content = String::from_utf8(bytes).map_err(|_| refuse("not_text", "it is not UTF-8"))?;
    let answer = json!({ "content": content });
    // Control characters take up to six bytes each in JSON.
    if answer.to_string().len() > MAX_LINE_BYTES - ENVELOPE_BYTES {
        return Err(refuse("too_large", "it has too many control characters"));
    }
    Ok(answer)
}

pub fn write_file(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: WriteFile = call.params()?;
    let mut write = AtomicWrite::begin(&agent.args, SandboxPath::resolve(&agent.args, params.path)?, None, None)?;
    write.append(params.content.as_bytes())?;
    write.finish()?;
    Ok(json!({ "success": true }))
}

pub async fn list_dir(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Named = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
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
            let message = format!("cannot return {path} in one answer: it has too many entries");
            return Err(AgentError::new(Code::FailedPrecondition, "too_large", message)
                .hint("use file.list, which streams any number of entries"));
        }
        entries.push(entry);
    }
    Ok(json!({ "entries": entries }))
}
