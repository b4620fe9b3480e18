use crate::agent::Agent;
use crate::call::Call;
use crate::error::{AgentError, Code, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::files::source::Source;
use crate::limits::MAX_LINE_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};

const MAX_TEXT_BYTES: usize = MAX_LINE_BYTES / 2;

#[derive(Deserialize)]
struct Params {
    path: String,
}

pub fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let shown = params.path.clone();
    let refuse = |reason, why: &str| {
        AgentError::new(Code::FailedPrecondition, reason, format!("cannot answer with {shown}: {why}"))
            .hint("use file.read, which streams any contents")
    };
    let mut source = Source::open(SandboxPath::resolve(agent, params.path)?, 0)?;
    let mut bytes = Vec::new();
    loop {
        let piece = source.read(MAX_TEXT_BYTES + 1 - bytes.len())?;
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_TEXT_BYTES {
            return Err(refuse("too_large", "it has more than half a mebibyte"));
        }
    }
    let content = String::from_utf8(bytes).map_err(|_| refuse("not_text", "it is not UTF-8"))?;
    let answer = json!({ "content": content });
    // Control characters take up to six bytes each in JSON.
    if answer.to_string().len() > MAX_LINE_BYTES - 1024 {
        return Err(refuse("too_large", "it has too many control characters"));
    }
    Ok(answer)
}
