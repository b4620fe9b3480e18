//! Channels that callers connect to: a Unix socket, and vsock where the kernel can loop it back.

mod client;

use client::TempDir;
use client::processes::{eventually, is_alive};
use client::wire::Wire;
use serde_json::json;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ended, with all it has started, when dropped.
struct Agent(Child);

impl Agent {
    fn start(home: &TempDir, channel: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandpiper-agent"));
        command.args(["--channel", channel]).env("HOME", home.path()).current_dir(home.path());
        Self(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the agent starts"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

fn start_unix(name: &str) -> (TempDir, Agent, PathBuf) {
    let home = TempDir::new(name);
    let path = home.path().join("agent.sock");
    let agent = Agent::start(&home, &format!("unix:{}", path.display()));
    eventually("the socket", || UnixStream::connect(&path).is_ok());
    (home, agent, path)
}

fn connect(path: &Path) -> Wire<UnixStream> {
    let stream = UnixStream::connect(path).expect("the agent accepts");
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Wire::new(stream)
}

#[test]
fn every_connection_has_calls_of_its_own_and_all_share_the_processes() {
    let (home, _agent, path) = start_unix("socket-several");
    let (mut one, mut two) = (connect(&path), connect(&path));
    one.call("process.spawn", json!({ "process": "p", "command": "read x; echo got $x", "stdin": true }));
    // Both connections count their calls from 1, so the same ids are in flight on both.
    let waits =
        (one.begin("process.wait", json!({ "process": "p" })), two.begin("process.wait", json!({ "process": "p" })));
    let mut three = connect(&path);
    assert_eq!(three.call("ping", json!({}))["result"], json!({ "pong": true }));
    three.send(
        &json!({ "jsonrpc": "2.0", "id": 9, "method": "process.stdin", "params": { "process": "p" }, "bytes": 3 }),
    );
    std::io::Write::write_all(&mut three.stream, b"hi\n\n").unwrap();
    assert_eq!(three.answer(&json!(9))["result"], json!({ "offset": 3 }));
    for (wire, call) in [(&mut one, waits.0), (&mut two, waits.1)] {
        assert_eq!(wire.answer(&json!(call))["result"]["status"]["exit_code"], json!(0));
    }
    // A hello cancels the calls of its own connection alone.
    assert!(Command::new("mkfifo").arg(home.path().join("fifo")).status().unwrap().success());
    let slow = two.begin("exec", json!({ "cmd": "cat fifo" }));
    assert_eq!(two.call("ping", json!({}))["result"], json!({ "pong": true }));
    one.call("hello", json!({ "generation": 1 }));
    std::fs::write(home.path().join("fifo"), "done\n").unwrap();
    assert_eq!(two.answer(&json!(slow))["result"]["stdout"], json!("done\n"));
}

#[test]
fn a_connection_that_ends_takes_its_calls_with_it_and_no_process() {
    let (home, _agent, path) = start_unix("socket-ends");
    let mut one = connect(&path);
    one.call("process.spawn", json!({ "process": "stays", "argv": ["sleep", "1000"] }));
    one.begin("exec", json!({ "cmd": "echo $$ > pid.new; mv pid.new pid; sleep 1000" }));
    eventually("the command", || home.path().join("pid").exists());
    let pid = std::fs::read_to_string(home.path().join("pid")).unwrap().trim().parse().unwrap();
    drop(one);
    eventually("the end of what exec started", || !is_alive(pid));
    let hello = connect(&path).call("hello", json!({ "generation": 1 }));
    let processes = hello["result"]["processes"].as_array().unwrap();
    assert!(processes.iter().any(|info| info["process"] == json!("stays") && info["status"].is_null()));
}

#[test]
fn only_the_agents_own_user_may_connect() {
    let (_home, _agent, path) = start_unix("socket-mode");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

fn connect_vsock(port: u32) -> std::io::Result<File> {
    // SAFETY: socket calls with a correctly sized, zeroed address; the descriptor is ours.
    unsafe {
        let fd = libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_vm = std::mem::zeroed();
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        address.svm_cid = libc::VMADDR_CID_LOCAL;
        address.svm_port = port;
        let size = size_of::<libc::sockaddr_vm>() as libc::socklen_t;
        if libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(socket.into())
    }
}

#[test]
fn vsock_carries_the_same_calls() {
    let port = 20_000 + std::process::id() % 40_000;
    // A loopback that exists refuses a port nobody listens on; anything else means that there is none.
    match connect_vsock(port) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNRESET | libc::ECONNREFUSED)) => {}
        other => {
            println!("SKIP: this kernel has no vsock loopback to connect through: {other:?}");
            return;
        }
    }
    let home = TempDir::new("socket-vsock");
    let _agent = Agent::start(&home, &format!("vsock:{port}"));
    eventually("the port", || connect_vsock(port).is_ok());
    let mut wire = Wire::new(connect_vsock(port).unwrap());
    assert_eq!(wire.call("exec", json!({ "cmd": "echo over vsock" }))["result"]["stdout"], json!("over vsock\n"));
}
