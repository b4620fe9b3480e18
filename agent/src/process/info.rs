//! Processes as `hello` and `process.list` describe them: all in one line.

use super::process::Process;
use crate::wire::json_size;
use crate::wire::limits::MAX_LINE_BYTES;
use serde_json::{Value, json};
use std::rc::Rc;

/// The longest argv or cwd that is not shortened.
const MAX_TEXT_BYTES: usize = 4096;
/// The limit for all texts together. The rest of the line is for the numbers.
const ALL_TEXTS_BYTES: usize = MAX_LINE_BYTES / 4;

pub fn describe_all(processes: &[Rc<Process>]) -> Vec<Value> {
    let each = (ALL_TEXTS_BYTES / processes.len().max(1)).min(MAX_TEXT_BYTES);
    processes.iter().map(|process| describe(process, each)).collect()
}

fn describe(process: &Process, most: usize) -> Value {
    json!({
        "process": process.id,
        "pid": process.pid,
        "argv": shorten_all(&process.argv, most),
        "cwd": shorten(&process.cwd, most / 2),
        "user": shorten(&process.user, 64),
        "pty": process.has_terminal,
        "started_at_ms": process.started_at_ms,
        "start_offset": process.output.start_offset(),
        "end_offset": process.output.end_offset(),
        "stdin_offset": process.stdin.offset(),
        "status": process.exit().map(|(status, _)| status.to_json()),
    })
}

/// Leaves out the words that do not fit, but never the first.
fn shorten_all(words: &[String], most: usize) -> Vec<String> {
    let mut room = most;
    let mut shortened = Vec::new();
    for word in words {
        if room < 8 {
            shortened.push("…".to_string());
            break;
        }
        let short = shorten(word, room);
        room = room.saturating_sub(json_size::size(&short) + 1);
        shortened.push(short);
    }
    shortened
}

fn shorten(text: &str, most: usize) -> String {
    if json_size::size(text) <= most {
        return text.to_string();
    }
    format!("{}…", json_size::fitting(text, most.saturating_sub('…'.len_utf8())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_text_that_fits() {
        assert_eq!(shorten_all(&["a".into(), "b c".into()], 100), ["a", "b c"]);
        assert_eq!(shorten("héllo", 8), "héllo");
    }

    #[test]
    fn shortens_text_by_its_size_in_json() {
        for text in ["x".repeat(10_000), "\u{1}".repeat(10_000), "é".repeat(10_000), "\"".repeat(10_000)] {
            let short = shorten(&text, 100);
            assert!(short.ends_with('…') && serde_json::to_string(&short).unwrap().len() <= 100, "{short}");
        }
        let words = shorten_all(&vec!["word".to_string(); 1000], 100);
        assert!(serde_json::to_string(&words).unwrap().len() <= 120);
        assert_eq!(words.last().unwrap(), "…");
    }
}
