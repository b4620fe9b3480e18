//! Stopping processes: by signal, by tree, by timeout.

mod client;

use client::agent::lacks_root;
use client::processes::is_alive;
use client::{Client, assert_refused, eventually, start};
use serde_json::json;
use std::collections::BTreeMap;

/// Runs a script that writes `count` lines "name pid" and keeps running.
fn start_tree(client: &mut Client, id: &str, script: &str, count: usize) -> BTreeMap<String, u64> {
    client.start_process(id, json!({ "command": script }));
    let call = client.begin_output(id, 0, 1000);
    let mut text = String::new();
    while text.lines().count() < count || !text.ends_with('\n') {
        text.push_str(&client.read_until(call, "\n"));
    }
    client.assert_cancels(call);
    let parse = |line: &str| line.split_once(' ').map(|(name, pid)| (name.to_string(), pid.parse().expect("a pid")));
    let pids: BTreeMap<String, u64> = text.lines().map(|line| parse(line).expect("a name and a pid")).collect();
    assert!(pids.len() == count && pids.values().all(|pid| is_alive(*pid)));
    pids
}

/// A child, a grandchild in its own session without an environment, and an orphan in a third session.
const TREE: &str = "sleep 1000 & echo child $!
env -i /bin/sh -c 'setsid sh -c \"echo grandchild \\$\\$; sleep 1000; :\" & wait' &
(setsid sh -c 'echo orphan $$; sleep 1000; :' &)
wait";

#[test]
fn sends_a_signal_by_name_or_number() {
    let (_home, mut client) = start("signal-names");
    for (id, signal, expected) in [("a", "SIGTERM", "SIGTERM"), ("b", "usr1", "SIGUSR1"), ("c", "9", "SIGKILL")] {
        client.start_process(id, json!({ "argv": ["sleep", "1000"] }));
        client.signal(id, signal, "process").unwrap();
        let status = client.wait(id)["status"].clone();
        assert_eq!(
            status,
            json!({ "exit_code": null, "signal": expected, "timed_out": false, "out_of_memory": false })
        );
    }
    assert_refused(client.signal("a", "SIGNOPE", "process"), "invalid_argument", "unknown_signal");
    assert_refused(client.signal("a", "TERM", "process"), "failed_precondition", "not_running");
    assert_eq!(client.signal("z", "TERM", "process").unwrap_err().reason, "no_such_process");
}

#[test]
fn signals_only_the_process_and_not_its_children() {
    let (_home, mut client) = start("signal-alone");
    let pids = start_tree(&mut client, "p", "sleep 1000 & echo child $!; wait", 1);
    client.signal("p", "KILL", "process").unwrap();
    client.wait("p");
    assert!(is_alive(pids["child"]));
    client.signal("p", "KILL", "tree").unwrap();
    eventually("the child of the exited process to end", || !is_alive(pids["child"]));
}

#[test]
fn kills_a_tree_across_sessions_and_orphans() {
    let (_home, mut client) = start("signal-tree");
    let pids = start_tree(&mut client, "p", TREE, 3);
    let bystander = client.start_process("bystander", json!({ "argv": ["sleep", "1000"] }));
    client.signal("p", "SIGKILL", "tree").unwrap();
    assert_eq!(client.wait("p")["status"]["signal"], json!("SIGKILL"));
    eventually("the end of the tree", || !pids.values().any(|pid| is_alive(*pid)));
    assert!(is_alive(bystander));
}

#[test]
fn lets_all_processes_of_a_tree_handle_sigterm() {
    let (home, mut client) = start("signal-gentle");
    let script = "trap 'echo parent >> ended; exit 3' TERM
sh -c 'trap \"echo child >> ended; exit\" TERM; echo child $$; while :; do sleep 0.01; done' & while :; do sleep 0.01; done";
    let pids = start_tree(&mut client, "p", script, 1);
    client.signal("p", "TERM", "tree").unwrap();
    assert_eq!(client.wait("p")["status"]["exit_code"], json!(3));
    eventually("the child's end", || !is_alive(pids["child"]));
    let ended = std::fs::read_to_string(home.join("ended")).unwrap();
    assert!(ended.contains("parent") && ended.contains("child"), "{ended}");
}

#[test]
fn kills_the_tree_on_timeout_and_reports_it() {
    let (_home, mut client) = start("signal-timeout");
    client.start_process("p", json!({ "command": "setsid sleep 1000 & echo $!; wait", "timeout_ms": 2000 }));
    let output = client.read_output("p", 0);
    let child: u64 = output.of("stdout").trim().parse().unwrap();
    let status = client.wait("p")["status"].clone();
    assert_eq!(status, json!({ "exit_code": null, "signal": "SIGKILL", "timed_out": true, "out_of_memory": false }));
    eventually("the child's end", || !is_alive(child));
    let (_, quick) = client.run("quick", json!({ "argv": ["true"], "timeout_ms": 60_000 }));
    assert_eq!(quick["status"]["timed_out"], json!(false));
}

#[test]
fn refuses_to_forget_a_running_process_and_forgets_an_exited_one_once() {
    let (_home, mut client) = start("signal-forget");
    client.start_process("p", json!({ "argv": ["sleep", "1000"] }));
    client.assert_refuses("process.forget", json!({ "process": "p" }), "failed_precondition", "still_running");
    client.signal("p", "KILL", "process").unwrap();
    client.wait("p");
    client.call("process.forget", json!({ "process": "p" })).unwrap();
    assert_eq!(client.call("process.forget", json!({ "process": "p" })).unwrap_err().reason, "no_such_process");
    client.start_process("p", json!({ "argv": ["true"] }));
}

#[test]
fn kills_a_fork_bomb_without_affecting_other_processes() {
    let (_home, mut client) = start("signal-bomb");
    if lacks_root("only root can run the bomb as a user with its own process limit") {
        return;
    }
    // A shell exits when it cannot fork, which could end the bomb. So each one starts again.
    let bomb = r#"exec 2>/dev/null; trap 'exec sh -c "$BOMB"' EXIT; sh -c "$BOMB" & sh -c "$BOMB" & wait"#;
    let argv = ["prlimit", "--nproc=100:100", "sh", "-c", bomb];
    client.start_process("bomb", json!({ "argv": argv, "env": { "BOMB": bomb }, "user": "54321", "cwd": "/" }));
    let count = || {
        let own = |entry: &std::fs::DirEntry| {
            use std::os::unix::fs::MetadataExt;
            entry.metadata().is_ok_and(|found| found.uid() == 54321)
        };
        std::fs::read_dir("/proc").unwrap().flatten().filter(own).count()
    };
    eventually("the bomb to start", || count() > 50);
    let (output, _) = client.run("other", json!({ "argv": ["echo", "fine"] }));
    assert_eq!(output.of("stdout"), "fine\n");
    client.signal("bomb", "KILL", "tree").unwrap();
    client.wait("bomb");
    eventually("the bomb to end", || count() == 0);
}

#[test]
fn starts_processes_while_another_stops_all_processes_of_their_user() {
    let (_home, mut client) = start("signal-stopper");
    if lacks_root("only root can run a process as another user") {
        return;
    }
    let stopper =
        json!({ "command": "trap '' TERM; echo on; while :; do kill -STOP -1; done", "user": "54323", "cwd": "/" });
    client.start_until("stopper", stopper, "on");
    for number in 0..100 {
        let id = format!("p{number}");
        client.start_process(&id, json!({ "argv": ["/bin/sleep", "1000"], "user": "54323", "cwd": "/" }));
        let missing = json!({ "argv": ["/no/such/program"], "user": "54323", "cwd": "/" });
        assert_eq!(client.call("process.spawn", missing).unwrap_err().reason, "no_such_program");
    }
}
