use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::files::sandbox_path::SandboxPath;
use crate::files::source::Source;
use crate::limits::CHUNK_BYTES;
use crate::window::Window;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::yield_now;

/// Read ahead of the caller's credit, so that the end of the file is found without any.
const PROBE_BYTES: u64 = 4096;

#[derive(Deserialize)]
struct Params {
    path: String,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
    window: Window,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let mut source = Source::open(SandboxPath::resolve(agent, params.path)?, params.offset)?;
    call.stream.add_credit(params.window.bytes());
    let mut missing = params.length.unwrap_or(u64::MAX);
    let mut sent = 0;
    while missing > 0 {
        let most = call.credit().max(PROBE_BYTES).min(CHUNK_BYTES as u64).min(missing);
        let bytes = source.read(most as usize)?;
        if bytes.is_empty() {
            break;
        }
        missing -= bytes.len() as u64;
        sent += bytes.len() as u64;
        call.send_owned(bytes).await;
        yield_now().await;
    }
    Ok(json!({ "size": sent }))
}
