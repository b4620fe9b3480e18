//! Channels that callers connect to: a Unix socket, and vsock where the kernel has a loopback.

mod client;

use client::agent::{AgentProcess, PROGRAM, TempDir, lacks_root, make_fifo, mode};
use client::processes::is_alive;
use client::{Client, eventually};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn start_unix(name: &str) -> (TempDir, AgentProcess, PathBuf) {
    let home = TempDir::new(name);
    let path = home.join("agent.sock");
    let agent = AgentProcess::serve(&home, &format!("unix:{}", path.display()));
    eventually("the agent to listen", || UnixStream::connect(&path).is_ok());
    (home, agent, path)
}

fn connect(path: &Path) -> Client<UnixStream> {
    let stream = UnixStream::connect(path).expect("the agent accepts");
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Client::on(stream)
}

#[test]
fn gives_each_connection_its_own_calls_and_shares_the_processes() {
    let (home, _agent, path) = start_unix("socket-several");
    let (mut one, mut two) = (connect(&path), connect(&path));
    one.start_process("p", json!({ "command": "read x; echo got $x", "stdin": true }));
    // Both connections number their calls from 1, so they use the same ids.
    let waits =
        (one.begin("process.wait", json!({ "process": "p" })), two.begin("process.wait", json!({ "process": "p" })));
    let mut three = connect(&path);
    assert_eq!(three.call("ping", json!({})), Ok(json!({ "pong": true })));
    assert_eq!(three.stdin("p", json!({}), b"hi\n"), Ok(json!({ "offset": 3 })));
    for (client, call) in [(&mut one, waits.0), (&mut two, waits.1)] {
        assert_eq!(client.answer(call).unwrap()["status"]["exit_code"], json!(0));
    }
    // A hello cancels only the calls of its own connection.
    make_fifo(&home.join("fifo"));
    let slow = two.begin("exec", json!({ "cmd": "cat fifo" }));
    assert_eq!(two.call("ping", json!({})), Ok(json!({ "pong": true })));
    one.call("hello", json!({ "generation": 1 })).unwrap();
    std::fs::write(home.join("fifo"), "done\n").unwrap();
    assert_eq!(two.answer(slow).unwrap()["stdout"], json!("done\n"));
}

#[test]
fn cancels_the_calls_of_a_closed_connection_and_keeps_its_processes() {
    let (home, _agent, path) = start_unix("socket-ends");
    let mut one = connect(&path);
    one.start_process("stays", json!({ "argv": ["sleep", "1000"] }));
    one.begin("exec", json!({ "cmd": "echo $$ > pid.new; mv pid.new pid; sleep 1000" }));
    eventually("the command to start", || home.join("pid").exists());
    let pid = std::fs::read_to_string(home.join("pid")).unwrap().trim().parse().unwrap();
    drop(one);
    eventually("the command to end", || !is_alive(pid));
    let hello = connect(&path).call("hello", json!({ "generation": 1 })).unwrap();
    let processes = hello["processes"].as_array().unwrap();
    assert!(processes.iter().any(|info| info["process"] == json!("stays") && info["status"].is_null()));
}

#[test]
fn restricts_the_socket_file_to_the_agents_own_user() {
    let (_home, _agent, path) = start_unix("socket-mode");
    assert_eq!(mode(&path), 0o600);
}

/// A name that no other test uses.
fn unique_name(title: &str) -> String {
    format!("sandpiper-test-{title}-{}", std::process::id())
}

fn start_relay(name: &str) -> Client {
    Client::spawn(Command::new(PROGRAM).args(["--relay", "--channel", &format!("unix:@{name}")]))
}

#[test]
fn relays_calls_and_exits_with_its_caller_or_its_agent() {
    let home = TempDir::new("relay");
    let name = unique_name("relay");
    // The relay waits for an agent that starts later.
    let mut relay = start_relay(&name);
    let agent = AgentProcess::serve(&home, &format!("unix:@{name}"));
    assert_eq!(relay.call("exec", json!({ "cmd": "echo relayed" })).unwrap()["stdout"], json!("relayed\n"));
    let much = relay.call("exec", json!({ "cmd": "head -c 150000 /dev/zero | tr '\\0' x" })).unwrap();
    assert_eq!(much["stdout"].as_str().map(str::len), Some(150_000));
    relay.stream.close_input();
    assert!(relay.stream.child.wait().unwrap().success());

    let mut relay = start_relay(&name);
    assert_eq!(relay.call("ping", json!({})), Ok(json!({ "pong": true })));
    drop(agent);
    assert!(relay.stream.child.wait().unwrap().success());
}

#[test]
fn serves_a_caller_while_the_relay_of_the_previous_one_hangs() {
    let home = TempDir::new("relay-hangs");
    let name = unique_name("relay-hangs");
    let _agent = AgentProcess::serve(&home, &format!("unix:@{name}"));
    let mut hanging = start_relay(&name);
    // The first caller never reads.
    hanging.begin("exec", json!({ "cmd": "head -c 4000000 /dev/zero" }));
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(hanging.stream.child.id() as i32, libc::SIGSTOP) };
    assert_eq!(start_relay(&name).call("ping", json!({})), Ok(json!({ "pong": true })));
    hanging.stream.child.kill().unwrap();
}

#[test]
fn closes_connections_of_other_users_to_an_abstract_socket() {
    if lacks_root("only root can act as another user") {
        return;
    }
    let home = TempDir::new("socket-name");
    let name = unique_name("name");
    let _agent = AgentProcess::serve(&home, &format!("unix:@{name}"));
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    eventually("the agent to listen", || UnixStream::connect_addr(&address).is_ok());
    let served = |uid: u32| {
        // SAFETY: the system call changes only this thread's user, and the thread ends below.
        let set = move || unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
        let address = address.clone();
        let asking = std::thread::spawn(move || {
            assert_eq!(set(), 0);
            let mut stream = UnixStream::connect_addr(&address).unwrap();
            let _ = stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}}\n");
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream.read(&mut [0; 64]).unwrap_or(0) > 0
        });
        asking.join().unwrap()
    };
    assert!(served(0));
    assert!(!served(65_534));
}

fn connect_vsock(port: u32) -> std::io::Result<File> {
    // SAFETY: socket calls with a correctly sized, zeroed address; the descriptor has no other owner.
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
fn serves_calls_over_vsock() {
    let port = 20_000 + std::process::id() % 40_000;
    // A loopback refuses a port without a listener. Any other error means that there is none.
    match connect_vsock(port) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNRESET | libc::ECONNREFUSED)) => {}
        Err(error) => {
            println!("SKIP: this kernel has no vsock loopback to connect through: {error}");
            return;
        }
        Ok(_) => panic!("a program already listens on vsock port {port}"),
    }
    let home = TempDir::new("socket-vsock");
    let _agent = AgentProcess::serve(&home, &format!("vsock:{port}"));
    eventually("the agent to listen", || connect_vsock(port).is_ok());
    let mut client = Client::on(connect_vsock(port).unwrap());
    assert_eq!(client.call("exec", json!({ "cmd": "echo over vsock" })).unwrap()["stdout"], json!("over vsock\n"));
}
