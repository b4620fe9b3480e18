//! An agent in a network namespace of its own, whose connections are redirected to it.

use super::agent::{TempDir, agent_command, is_root};
use super::{Client, Event};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
pub const WINDOW: usize = 256 * 1024;

pub struct Redirected {
    _home: TempDir,
    pub agent: Client,
    namespace: u32,
}

/// None, with the reason, where a test cannot have a network namespace.
pub fn redirected(name: &str) -> Option<Redirected> {
    if !is_root() {
        println!("SKIP: a network namespace needs root");
        return None;
    }
    let home = TempDir::new(name);
    let mut command = agent_command(&home);
    command.args(["--exit-on-eof", "--network", "private"]);
    // Mounts of its own, because the agent writes /etc/resolv.conf.
    // SAFETY: only system calls, which are allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let none = std::ptr::null();
            let is_apart = libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) == 0
                && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0
                && libc::mount(c"none".as_ptr(), c"/etc".as_ptr(), c"tmpfs".as_ptr(), 0, none.cast()) == 0;
            if is_apart { Ok(()) } else { Err(io::Error::last_os_error()) }
        });
    }
    let agent = Client::spawn(&mut command);
    let namespace = agent.stream.child.id();
    Some(Redirected { _home: home, agent, namespace })
}

impl Redirected {
    /// Runs a part of a program in the sandbox.
    pub fn inside<T: Send>(&self, program: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/proc/{}/ns/net", self.namespace)).expect("the agent runs");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: changes only the namespace of this thread.
                assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
                program()
            });
            thread.join().expect("the program does not fail")
        })
    }

    pub fn connect(&self, address: &str) -> TcpStream {
        let stream = self.inside(|| TcpStream::connect(address)).expect("connections are accepted");
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends a datagram to the name server.
    pub fn ask(&self, message: &[u8]) -> UdpSocket {
        let socket = self.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket.connect("10.0.2.3:53").unwrap();
        socket.send(message).unwrap();
        socket
    }

    /// Waits until the agent is ready.
    pub fn serve(&mut self) -> u64 {
        self.serve_with(WINDOW)
    }

    pub fn serve_with(&mut self, window: usize) -> u64 {
        let call = self.agent.begin("net.serve", json!({ "window": window }));
        assert_eq!(self.lines(call), [json!({ "kind": "ready", "redirected": true })]);
        call
    }

    /// The lines of the next message.
    pub fn lines(&mut self, call: u64) -> Vec<Value> {
        match self.agent.event(call) {
            Event::Data { bytes, .. } => {
                let text = String::from_utf8(bytes).unwrap();
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            }
            other => panic!("expected lines, got {other:?}"),
        }
    }

    pub fn line(&mut self, call: u64) -> Value {
        let mut lines = self.lines(call);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// Accepts a flow and waits until it is open.
    pub fn accept(&mut self, flow: &Value) -> u64 {
        let call = self.agent.begin("net.accept", json!({ "flow": flow["flow"], "window": WINDOW }));
        assert!(matches!(self.agent.event(call), Event::Credit(1..)));
        call
    }
}

/// What ends a connection: the error of the next read, or None for an orderly end.
pub fn end_of(mut stream: &TcpStream) -> Option<io::ErrorKind> {
    match stream.read(&mut [0; 1]) {
        Ok(0) => None,
        Ok(_) => panic!("expected the end"),
        Err(error) => Some(error.kind()),
    }
}

/// A query for one name.
pub fn query(id: u16, name: &str, record_type: u16) -> Vec<u8> {
    let mut message = [&id.to_be_bytes()[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.write_all(&record_type.to_be_bytes()).unwrap();
    message.extend([0, 1]);
    message
}

/// The code of an answer and the bytes after its question.
pub fn answer(asked: &[u8], message: &[u8]) -> (u8, Vec<u8>) {
    assert_eq!(message[..2], asked[..2], "the id");
    assert_eq!(message[2] & 0x80, 0x80, "an answer");
    assert_eq!(message[12..asked.len()], asked[12..], "the question");
    (message[3] & 0x0f, message[asked.len()..].to_vec())
}
