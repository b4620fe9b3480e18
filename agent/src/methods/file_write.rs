use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::files::atomic_write::AtomicWrite;
use crate::files::mode::Mode;
use crate::files::sandbox_path::SandboxPath;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a caller may send ahead of what has reached the file.
const WINDOW_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Params {
    path: String,
    mode: Option<Mode>,
    owner: Option<String>,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    let mut write = AtomicWrite::begin(agent, path, params.mode, params.owner.as_deref())?;
    call.grant(WINDOW_BYTES).await;
    let mut size = 0;
    while let Some(bytes) = call.receive().await {
        write.append(&bytes)?;
        size += bytes.len() as u64;
        call.grant(bytes.len()).await;
    }
    write.finish()?;
    Ok(json!({ "size": size }))
}
