//! Methods of processes.

use crate::agent::Agent;
use crate::calls::call::{Call, HEAD_BYTES};
use crate::calls::window::Window;
use crate::error::{AgentError, Result};
use crate::process::journal::Piece;
use crate::process::launch::{self, SpawnParams};
use crate::process::terminal::Size;
use crate::process::{info, signal as signals};
use crate::wire::limits::CHUNK_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Output {
    process: String,
    #[serde(default)]
    offset: u64,
    window: Window,
}

#[derive(Deserialize)]
struct Stdin {
    process: String,
    offset: Option<u64>,
    #[serde(default)]
    close: bool,
}

#[derive(Deserialize)]
struct Signal {
    process: String,
    signal: String,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Target {
    #[default]
    Process,
    Tree,
}

#[derive(Deserialize)]
struct Resize {
    process: String,
    #[serde(flatten)]
    size: Size,
}

#[derive(Deserialize)]
struct Named {
    process: String,
}

pub fn spawn(agent: &Agent, mut call: Call) -> Result<Value> {
    let process = launch::launch(&agent.args, &agent.processes, call.params::<SpawnParams>()?)?;
    Ok(json!({ "process": process.id, "pid": process.pid }))
}

pub async fn output(agent: &Agent, mut call: Call) -> Result<Value> {
    let Output { process, offset, window } = call.params()?;
    let process = agent.processes.get(&process)?;
    let end = process.output.end_offset();
    if offset > end {
        let message = format!("cannot read process {:?} from offset {offset}: its output ends at {end}", process.id);
        return Err(AgentError::invalid("offset_beyond_end", message));
    }
    call.stream.add_credit(window.bytes());
    let reader = process.output.attach(offset);
    while reader.ready().await {
        let credit = call.take_credit(CHUNK_BYTES).await;
        let space = call.outbox.reserve(credit + HEAD_BYTES).await;
        let piece = reader.read(credit);
        let sent = piece.as_ref().map_or(0, |piece| piece.bytes.len());
        call.stream.add_credit((credit - sent) as u64);
        if let Some(piece) = piece {
            call.send_data_reserved(space, &data_fields(&piece), piece.bytes);
        }
    }
    Ok(json!({ "offset": reader.position() }))
}

fn data_fields(piece: &Piece) -> String {
    let dropped = if piece.dropped > 0 { format!(r#","dropped":{}"#, piece.dropped) } else { String::new() };
    format!(r#","offset":{},"source":"{}"{dropped}"#, piece.offset, piece.source.as_str())
}

pub async fn stdin(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Stdin = call.params()?;
    let process = agent.processes.get(&params.process)?;
    let bytes = call.attachment.take().unwrap_or_default();
    let offset = process.stdin.write(&bytes, params.offset, params.close).await?;
    Ok(json!({ "offset": offset }))
}

pub fn signal(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Signal = call.params()?;
    let process = agent.processes.get(&params.process)?;
    let signal = signals::parse(&params.signal)?;
    match params.target {
        Target::Process => process.signal(signal)?,
        Target::Tree => process.signal_tree(signal),
    }
    Ok(json!({}))
}

pub fn resize(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Resize = call.params()?;
    agent.processes.get(&params.process)?.resize(params.size.check()?)?;
    Ok(json!({}))
}

pub async fn wait(agent: &Agent, mut call: Call) -> Result<Value> {
    let Named { process } = call.params()?;
    let process = agent.processes.get(&process)?;
    let (status, duration) = process.wait().await;
    Ok(json!({
        "status": status.to_json(),
        "duration_ms": duration.as_micros() as f64 / 1000.0,
        "end_offset": process.output.ended_at(),
    }))
}

pub fn list(agent: &Agent) -> Result<Value> {
    Ok(json!({ "processes": info::describe_all(&agent.processes.all()) }))
}

pub fn forget(agent: &Agent, mut call: Call) -> Result<Value> {
    let Named { process } = call.params()?;
    agent.processes.forget(&process)?;
    Ok(json!({}))
}
