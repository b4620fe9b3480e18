//! A serial port, replaced by the slave side of a terminal.

mod client;

use client::agent::{AgentProcess, TempDir};
use client::{Client, eventually};
use sandpiper_agent::wire::limits::PROTOCOL_GENERATION;
use serde_json::json;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

/// Both sides of a terminal with default settings, which echoes and edits lines.
fn open_pair() -> (File, File, String) {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: openpty fills two descriptors, which have no other owner.
    unsafe {
        let null = std::ptr::null_mut();
        assert_eq!(libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()), 0);
        let (master, slave) = (File::from_raw_fd(master), File::from_raw_fd(slave));
        let path = std::fs::read_link(format!("/proc/self/fd/{}", slave.as_raw_fd())).unwrap();
        (master, slave, path.to_str().unwrap().to_string())
    }
}

fn is_raw(terminal: &File) -> bool {
    // SAFETY: termios is plain data and the call fills it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut settings), 0);
        settings.c_lflag & (libc::ICANON | libc::ECHO | libc::ISIG) == 0 && settings.c_oflag & libc::OPOST == 0
    }
}

#[test]
fn carries_every_byte_unchanged_over_a_serial_port() {
    let home = TempDir::new("serial");
    let (master, slave, path) = open_pair();
    let _agent = AgentProcess::serve(&home, &format!("serial:{path}"));
    eventually("the terminal to be raw", || is_raw(&master));
    drop(slave);

    let mut client = Client::on(master);
    let hello = client.call("hello", json!({ "generation": 1 })).unwrap();
    assert_eq!(hello["generation"], json!(PROTOCOL_GENERATION));
    client.start_process("p", json!({ "argv": ["cat"], "stdin": true }));
    let bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    let written = client.stdin("p", json!({ "close": true }), &bytes);
    assert_eq!(written, Ok(json!({ "offset": bytes.len() })));
    assert!(client.read_output("p", 0).bytes() == bytes);
}
