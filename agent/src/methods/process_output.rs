use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Result};
use crate::limits::CHUNK_BYTES;
use crate::process::journal::Piece;
use crate::window::Window;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    process: String,
    #[serde(default)]
    offset: u64,
    window: Window,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let Params { process, offset, window } = call.params()?;
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
        let piece = reader.read(credit);
        let sent = piece.as_ref().map_or(0, |piece| piece.bytes.len());
        call.stream.add_credit((credit - sent) as u64);
        if let Some(piece) = piece {
            send(&call, piece).await;
        }
    }
    Ok(json!({ "offset": reader.position() }))
}

async fn send(call: &Call, piece: Piece) {
    let dropped = if piece.dropped > 0 { format!(r#","dropped":{}"#, piece.dropped) } else { String::new() };
    let fields = format!(r#","offset":{},"source":"{}"{dropped}"#, piece.offset, piece.source.as_str());
    call.send_data(&fields, piece.bytes).await;
}
