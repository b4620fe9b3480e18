use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::Result;
use crate::files::atomic_write::AtomicWrite;
use crate::files::mode::Mode;
use crate::files::sandbox_path::SandboxPath;
use crate::wire::limits::FILE_PIECE_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a caller may send before it has reached the file.
const WINDOW_BYTES: usize = 2 * FILE_PIECE_BYTES;

#[derive(Deserialize)]
struct Params {
    path: String,
    mode: Option<Mode>,
    owner: Option<String>,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    let mut write = AtomicWrite::begin(&agent.args, path, params.mode, params.owner.as_deref())?;
    call.grant(WINDOW_BYTES).await;
    let mut size = 0;
    let mut not_granted = 0;
    while let Some(bytes) = call.receive().await {
        write.append(&bytes)?;
        size += bytes.len() as u64;
        not_granted += bytes.len();
        // Each grant wakes the caller, so small ones are collected.
        if not_granted >= WINDOW_BYTES / 2 {
            call.grant(std::mem::take(&mut not_granted)).await;
        }
    }
    write.finish()?;
    Ok(json!({ "size": size }))
}
