//! `exec` and `exec_code`: run a process to its end and answer with its output as text.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::{AgentError, Result};
use crate::files::owner::Owner;
use crate::os::random_id;
use crate::process::language;
use crate::process::launch::{self, CodeParams, SpawnParams};
use crate::process::output::Reader;
use crate::process::process::Process;
use crate::process::segments::Source;
use crate::wire::json_size;
use crate::wire::limits::{CHUNK_BYTES, MAX_LINE_BYTES};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;
use tokio::task::{JoinHandle, spawn_local};

/// Kept of each of stdout and stderr.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;
/// Escaping lengthens bytes that are not text. With this limit both outputs still fit in a line.
const MAX_ESCAPED_BYTES: usize = MAX_LINE_BYTES / 2 - 16 * 1024;
/// Needs no file: the collector reads as fast as the process writes.
const JOURNAL_BYTES: u64 = 256 * 1024;

#[derive(Deserialize)]
struct Exec {
    cmd: String,
    #[serde(flatten)]
    how: How,
}

#[derive(Deserialize)]
struct ExecCode {
    lang: String,
    code: String,
    #[serde(flatten)]
    how: How,
}

#[derive(Deserialize)]
struct How {
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    user: Option<String>,
    stdin: Option<String>,
    timeout_ms: Option<u64>,
}

pub async fn exec(agent: &Agent, mut call: Call) -> Result<Value> {
    let Exec { cmd, how } = call.params()?;
    run(agent, SpawnParams { command: Some(cmd), ..Default::default() }, how).await
}

pub async fn exec_code(agent: &Agent, mut call: Call) -> Result<Value> {
    let ExecCode { lang, code, how } = call.params()?;
    let owner = Owner::choose(&agent.args, how.user.as_deref())?;
    let path = format!("/tmp/.sandpiper-{}{}", random_id(), language::file_suffix(&lang));
    if let Err(error) = write_source(&path, &code, owner) {
        let _ = std::fs::remove_file(&path);
        return Err(AgentError::io("write the code to", &path, &error));
    }
    // From here on the launch removes the file, also when it fails.
    let code = CodeParams { language: lang, path, ephemeral: Some(true) };
    run(agent, SpawnParams { code: Some(code), ..Default::default() }, how).await
}

/// Only the user who runs the code can read it.
fn write_source(path: &str, code: &str, owner: Owner) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(code.as_bytes())?;
    owner.apply(file.as_fd(), 0o600)
}

async fn run(agent: &Agent, what: SpawnParams, how: How) -> Result<Value> {
    let params = SpawnParams {
        cwd: how.cwd,
        env: how.env,
        user: how.user,
        stdin: Some(how.stdin.is_some()),
        timeout_ms: how.timeout_ms,
        journal_bytes: Some(JOURNAL_BYTES),
        ..what
    };
    let process = launch::launch(&agent.args, &agent.processes, params)?;
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
        // Fails when the process closes its input, which it may.
        let _ = process.stdin.write(text.as_bytes(), None, true).await;
    })
}

/// Kills and forgets the process however the call ends.
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
        let fitting = json_size::fitting(&text, MAX_ESCAPED_BYTES);
        (fitting.to_string(), self.is_cut || fitting.len() < text.len())
    }
}

/// Removes a character that the cut has split.
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
    fn keeps_output_within_the_limit_and_replaces_invalid_bytes() {
        let mut kept = Kept::default();
        for piece in [&b"h\xc3"[..], &[0xa9], &[0xff, b'!']] {
            kept.add(piece);
        }
        assert_eq!(kept.into_text(), ("h\u{e9}\u{fffd}!".to_string(), false));
    }

    #[test]
    fn never_splits_a_character_when_it_truncates() {
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
    fn fits_both_outputs_into_a_line_whatever_bytes_they_hold() {
        for byte in [0u8, 1, b'"', 0xff, b'x'] {
            let mut kept = Kept::default();
            kept.add(&vec![byte; 2 * MAX_OUTPUT_BYTES]);
            let (text, is_cut) = kept.into_text();
            assert!(is_cut && 2 * serde_json::to_string(&text).unwrap().len() < MAX_LINE_BYTES - 1024);
        }
    }
}
