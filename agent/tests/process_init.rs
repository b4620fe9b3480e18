//! The duties of PID 1: it reaps orphans, nothing inside stops it, and it leaves no processes behind.

mod client;

use client::agent::{PROGRAM, TempDir, is_root, make_fifo};
use client::processes::is_alive;
use client::{Client, assert_refused, eventually, start};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// The agent's children in the given state.
fn children(agent: u32, state: &str) -> usize {
    let is_child = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        fields.next() == Some(state) && fields.next() == Some(&agent.to_string())
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(is_child).count()
}

#[test]
fn adopts_and_reaps_orphans() {
    let (home, mut client) = start("init-orphans");
    let script = "for i in 1 2 3 4 5; do (sh -c 'read x < fifo' &); done";
    make_fifo(&home.join("fifo"));
    client.run("p", json!({ "command": script }));
    let agent = client.stream.child.id();
    eventually("five orphans", || children(agent, "S") == 5);
    std::fs::write(home.join("fifo"), "a\nb\nc\nd\ne\n").unwrap();
    client.signal("p", "KILL", "tree").unwrap();
    eventually("the agent to have no children", || children(agent, "S") + children(agent, "Z") == 0);
}

#[test]
fn kills_all_processes_and_exits_when_its_input_ends() {
    let (_home, mut client) = start("init-eof");
    let pid = client.start_process("p", json!({ "command": "setsid sleep 1000 & echo $!; sleep 1000" }));
    let call = client.begin_output("p", 0, 100);
    let child: u64 = client.read_until(call, "\n").trim().parse().unwrap();
    client.stream.close_input();
    assert_eq!(client.stream.child.wait().unwrap().code(), Some(0));
    eventually("all processes to end", || !is_alive(pid) && !is_alive(child));
}

#[test]
fn kills_all_processes_and_exits_on_sigterm() {
    let (_home, mut client) = start("init-term");
    let pid = client.start_process("p", json!({ "argv": ["sleep", "1000"] }));
    // SAFETY: signals a child that has not been waited for.
    unsafe { libc::kill(client.stream.child.id() as i32, libc::SIGTERM) };
    let status = client.stream.child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(128 + libc::SIGTERM), None));
    eventually("the process's end", || !is_alive(pid));
}

#[test]
fn ignores_all_signals_that_do_not_stop_it() {
    let (_home, mut client) = start("init-signals");
    assert!(client.call("ping", json!({})).is_ok());
    let meant = [libc::SIGKILL, libc::SIGSTOP, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
    for signal in (1..=64).filter(|signal| !meant.contains(signal)) {
        // SAFETY: signals a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(client.stream.child.id() as i32, signal) }, 0);
    }
    let (output, _) = client.run("after", json!({ "argv": ["echo", "fine"] }));
    assert_eq!(output.of("stdout"), "fine\n");
}

#[test]
fn survives_signals_from_inside_as_pid_1() {
    let home = TempDir::new("init-pid1");
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child", PROGRAM]);
    let mut client = Client::spawn(command.env("HOME", &*home).current_dir(&*home));
    client.start_process("sleeper", json!({ "argv": ["sleep", "1000"] }));
    let script = "for s in $(seq 1 64); do kill -$s 1; done; kill -9 -1";
    client.start_process("killer", json!({ "command": script }));
    // kill(-1) spares PID 1 and the killer itself.
    assert_eq!(client.wait("sleeper")["status"]["signal"], json!("SIGKILL"));
    client.wait("killer");
    let (output, _) = client.run("after", json!({ "command": "echo alive; echo $PPID" }));
    assert_eq!(output.of("stdout"), "alive\n1\n");
}

#[test]
fn remembers_1024_exited_processes_and_drops_the_oldest() {
    let (_home, mut client) = start("init-many");
    for number in 0..1030 {
        client.start_process(&format!("p{number}"), json!({ "argv": ["/bin/true"] }));
        client.wait(&format!("p{number}"));
    }
    let list = client.list();
    assert_eq!(list.len(), 1024);
    assert_eq!((&list[0]["process"], &list[1023]["process"]), (&json!("p6"), &json!("p1029")));
    let hello = client.call("hello", json!({ "generation": 1 })).unwrap();
    assert_eq!(hello["processes"].as_array().unwrap().len(), 1024);
}

#[test]
fn lists_many_long_commands_in_one_line() {
    let (_home, mut client) = start("init-long-list");
    let word = "\u{1}long\"".repeat(1000);
    for number in 0..300 {
        client.start_process(&format!("p{number}"), json!({ "argv": ["/bin/true", word, word] }));
    }
    // The client rejects a line over the limit.
    let list = client.list();
    assert_eq!(list.len(), 300);
    assert_eq!(list[0]["argv"][0], json!("/bin/true"));
}

#[test]
fn reports_an_error_and_survives_when_descriptors_run_out() {
    let home = TempDir::new("init-descriptors");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" --exit-on-eof", PROGRAM]);
    let mut client = Client::spawn(command.env("HOME", &*home));
    let mut started = 0;
    let refused = loop {
        match client.call("process.spawn", json!({ "argv": ["sleep", "1000"], "process": format!("p{started}") })) {
            Ok(_) => started += 1,
            refused => break refused,
        }
    };
    assert_refused(refused, "resource_exhausted", "too_many_open_files");
    assert!(started > 5, "{started}");
    for number in 0..started {
        client.signal(&format!("p{number}"), "KILL", "process").unwrap();
        client.wait(&format!("p{number}"));
    }
    // Exited processes hold no descriptors.
    assert_eq!(client.list().len(), started);
    let (output, _) = client.run("after", json!({ "argv": ["echo", "fine"] }));
    assert_eq!(output.of("stdout"), "fine\n");
}
