//! Runs a process to its end and answers with its output as text, in one line.

use super::launch::{self, SpawnParams};
use super::output::Reader;
use super::process::Process;
use super::segments::Source;
use crate::agent::Agent;
use crate::error::Result;
use crate::json_text;
use crate::limits::{CHUNK_BYTES, MAX_LINE_BYTES};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::task::{JoinHandle, spawn_local};

/// Kept of stdout, and of stderr.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;
/// Bytes that are not text grow when they are escaped; both outputs still fit in a line, with room for the rest.
const MAX_ESCAPED_BYTES: usize = MAX_LINE_BYTES / 2 - 16 * 1024;
/// Small enough never to need a file, since the collector keeps up with the process.
const JOURNAL_BYTES: u64 = 256 * 1024;

#[derive(Deserialize)]
pub struct CollectParams {
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    pub user: Option<String>,
    stdin: Option<String>,
    timeout_ms: Option<u64>,
}

pub async fn run(agent: &Rc<Agent>, what: SpawnParams, how: CollectParams) -> Result<Value> {
    let process = launch::launch(
        agent,
        SpawnParams {
            cwd: how.cwd,
            env: how.env,
            user: how.user,
            stdin: Some(how.stdin.is_some()),
            timeout_ms: how.timeout_ms,
            journal_bytes: Some(JOURNAL_BYTES),
            ..what
        },
    )?;
    let reader = process.output.attach(0);
    let running = Running { agent, feeding: how.stdin.map(|text| feed(&process, text)), process };
    let mut stdout = Kept::default();
    let mut stderr = Kept::default();
    collect(&reader, &mut stdout, &mut stderr).await;
    let (status, _) = running.process.wait().await;
    let (stdout, stdout_cut) = stdout.into_text();
    let (stderr, stderr_cut) = stderr.into_text();
    Ok(json!({
        "exit_code": status.shell_code(),
        "stdout": stdout,
        "stderr": stderr,
        "signal": status.signal_name(),
        "timed_out": status.timed_out,
        "out_of_memory": status.out_of_memory,
        "truncated": stdout_cut || stderr_cut,
    }))
}

async fn collect(reader: &Reader, stdout: &mut Kept, stderr: &mut Kept) {
    while reader.ready().await {
        if let Some(piece) = reader.read(CHUNK_BYTES) {
            if piece.source == Source::Stderr { stderr.add(&piece.bytes) } else { stdout.add(&piece.bytes) }
        }
    }
}

fn feed(process: &Rc<Process>, text: String) -> JoinHandle<()> {
    let process = Rc::clone(process);
    spawn_local(async move {
        // A process that does not want its input may close it.
        let _ = process.stdin.write(text.as_bytes(), None, true).await;
    })
}

/// Leaves nothing behind, however the call ends: what still runs is killed, and the record goes.
struct Running<'a> {
    agent: &'a Agent,
    process: Rc<Process>,
    feeding: Option<JoinHandle<()>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
        self.agent.processes.abandon(&self.process);
    }
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(MAX_OUTPUT_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.is_cut |= taken < bytes.len();
    }

    fn into_text(mut self) -> (String, bool) {
        if self.is_cut {
            drop_half_character(&mut self.bytes);
        }
        let text = String::from_utf8_lossy(&self.bytes);
        let fitting = json_text::fitting(&text, MAX_ESCAPED_BYTES);
        (fitting.to_string(), self.is_cut || fitting.len() < text.len())
    }
}

/// The cut may have gone through a character that was whole.
fn drop_half_character(bytes: &mut Vec<u8>) {
    let tail = bytes.len().saturating_sub(3);
    for start in tail..bytes.len() {
        if std::str::from_utf8(&bytes[start..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        {
            return bytes.truncate(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_within_the_bounds_is_kept_whole_and_decoded_leniently() {
        let mut kept = Kept::default();
        kept.add("h\u{e9}".as_bytes());
        kept.add(&[0xff, b'!']);
        assert_eq!(kept.into_text(), ("h\u{e9}\u{fffd}!".to_string(), false));
    }

    #[test]
    fn a_cut_never_goes_through_a_character() {
        for shift in 0..4 {
            let mut kept = Kept::default();
            kept.add(&vec![b'x'; shift]);
            kept.add("😀".repeat(MAX_OUTPUT_BYTES / 4).as_bytes());
            let (text, is_cut) = kept.into_text();
            assert_eq!(is_cut, shift > 0);
            assert!(text.ends_with('😀') && text.len() > MAX_OUTPUT_BYTES - 4, "{shift}");
        }
    }

    #[test]
    fn both_outputs_fit_in_a_line_whatever_is_in_them() {
        for byte in [0u8, 1, b'"', 0xff, b'x'] {
            let mut kept = Kept::default();
            kept.add(&vec![byte; 2 * MAX_OUTPUT_BYTES]);
            let (text, is_cut) = kept.into_text();
            assert!(is_cut && 2 * serde_json::to_string(&text).unwrap().len() < MAX_LINE_BYTES - 1024);
        }
    }
}
