//! Callers that read slowly or not at all do not block others, and memory does not grow.

mod client;

use client::agent::{TempDir, agent_command};
use client::processes::state;
use client::{memory_kib, start};
use serde_json::json;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::Stdio;

const MIB: u64 = 1024 * 1024;

/// Anonymous memory, which is the same for debug and release builds.
const OWN_MEMORY: &str = "RssAnon:";

#[test]
fn serves_other_readers_while_one_has_no_credit() {
    let (_home, mut client) = start("slow-credit");
    let endless = json!({ "command": "while :; do echo 0123456789; done", "journal_bytes": MIB });
    client.start_process("stalled", endless);
    let stalled = client.begin_output("stalled", 0, 1);
    client.start_process("flowing", json!({ "command": "head -c 52428800 /dev/zero" }));
    let flowing = client.begin_output("flowing", 0, 1 << 20);
    let (mut size, mut peak) = (0, 0);
    let pid = client.stream.child.id();
    let answer = client.for_each_piece(flowing, |_, bytes| {
        assert!(bytes.iter().all(|byte| *byte == 0));
        size += bytes.len() as u64;
        peak = peak.max(memory_kib(pid, OWN_MEMORY));
    });
    assert_eq!((answer, size), (Ok(json!({ "offset": 50 * MIB })), 50 * MIB));
    assert!(peak < 8 * 1024, "{peak} KiB at its highest");
    assert_eq!(client.read_exactly(stalled, 1), b"0");
}

#[test]
fn uses_bounded_memory_for_a_caller_that_never_reads() {
    let home = TempDir::new("slow-deaf");
    let mut command = agent_command(&home);
    command.arg("--exit-on-eof");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the agent starts");
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());

    let mut lines = String::new();
    for number in 0..20 {
        let params = json!({ "process": format!("p{number}"), "command": "yes", "journal_bytes": 262_144 });
        lines += &format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": 2 * number, "method": "process.spawn", "params": params })
        );
        let params = json!({ "process": format!("p{number}"), "window": 64 * MIB });
        let message = json!({ "jsonrpc": "2.0", "id": 2 * number + 1, "method": "process.output", "params": params });
        lines += &format!("{message}\n");
    }
    input.write_all(lines.as_bytes()).unwrap();
    // SAFETY: plain fcntl on an open descriptor.
    unsafe { libc::fcntl(input.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    // Calls that are canceled at once, until the agent reads no more.
    let mut sent = 0u64;
    loop {
        let pair = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"n{sent}\",\"method\":\"ping\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{{\"call\":\"n{sent}\"}}}}\n"
        );
        match input.write(pair.as_bytes()) {
            Ok(size) if size == pair.len() => sent += 1,
            Ok(_) => break,
            // An agent that sleeps although its input is full waits for its caller to read, or for a moment for a spawn.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let mut watched = libc::pollfd { fd: input.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
                // SAFETY: one descriptor, which is open.
                let takes_more = unsafe { libc::poll(&mut watched, 1, 500) } == 1;
                if !takes_more && state(child.id().into()).expect("the agent runs") == 'S' {
                    break;
                }
            }
            Err(error) => panic!("the agent exited: {error}"),
        }
    }
    assert!(sent > 1000, "{sent}");
    let memory = memory_kib(child.id(), OWN_MEMORY);
    assert!(memory < 16 * 1024, "{memory} KiB after {sent} unread calls");

    // When the caller reads, the agent answers everything.
    let last = format!("\"id\":\"n{}\"", sent - 1).into_bytes();
    let (mut seen, mut buffer) = (Vec::new(), vec![0; 65536]);
    while !seen.windows(last.len()).any(|window| window == last) {
        seen.drain(..seen.len().saturating_sub(last.len()));
        let size = output.read(&mut buffer).unwrap();
        assert!(size > 0, "the agent exited");
        seen.extend_from_slice(&buffer[..size]);
    }
    drop(input);
    output.read_to_end(&mut seen).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
