use crate::agent::Agent;
use crate::call::{Call, HEAD_BYTES};
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
        let room = call.outbox.room(credit + HEAD_BYTES).await;
        let piece = reader.read(credit);
        let sent = piece.as_ref().map_or(0, |piece| piece.bytes.len());
        call.stream.add_credit((credit - sent) as u64);
        if let Some(piece) = piece {
            call.send_data_in(room, &fields(&piece), piece.bytes);
        }
    }
    Ok(json!({ "offset": reader.position() }))
}

fn fields(piece: &Piece) -> String {
    let dropped = if piece.dropped > 0 { format!(r#","dropped":{}"#, piece.dropped) } else { String::new() };
    format!(r#","offset":{},"source":"{}"{dropped}"#, piece.offset, piece.source.as_str())
}
