use crate::agent::Agent;
use crate::calls::call::{Call, HEAD_BYTES};
use crate::calls::window::Window;
use crate::error::Result;
use crate::files::file_reader::FileReader;
use crate::files::sandbox_path::SandboxPath;
use crate::wire::limits::FILE_PIECE_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::yield_now;

/// Read before the caller grants credit, so that the end of the file needs none.
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
    let mut source = FileReader::open(SandboxPath::resolve(&agent.args, params.path)?, params.offset)?;
    call.stream.add_credit(params.window.bytes());
    let mut missing = params.length.unwrap_or(u64::MAX);
    let mut sent = 0;
    while missing > 0 {
        let size = match call.credit() {
            0 => send_probe(&call, &mut source, missing).await?,
            credit => send_piece(&call, &mut source, missing.min(credit)).await?,
        };
        if size == 0 {
            break;
        }
        missing -= size;
        sent += size;
        yield_now().await;
    }
    Ok(json!({ "size": sent }))
}

async fn send_piece(call: &Call, source: &mut FileReader, most: u64) -> Result<u64> {
    let credit = call.take_credit(most.min(FILE_PIECE_BYTES as u64) as usize).await;
    let space = call.outbox.reserve(credit + HEAD_BYTES).await;
    let bytes = source.read(credit)?;
    let size = bytes.len();
    call.stream.add_credit((credit - size) as u64);
    if size > 0 {
        call.send_data_reserved(space, "", bytes);
    }
    Ok(size as u64)
}

async fn send_probe(call: &Call, source: &mut FileReader, most: u64) -> Result<u64> {
    let bytes = source.read(most.min(PROBE_BYTES) as usize)?;
    call.send_all(&bytes).await;
    Ok(bytes.len() as u64)
}
