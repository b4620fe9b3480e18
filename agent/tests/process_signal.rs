//! Ending processes: by signal, by tree, by time.

mod client;

use client::processes::{eventually, is_alive};
use client::{Client, TempDir};
use serde_json::json;
use std::collections::BTreeMap;

fn start(name: &str) -> (TempDir, Client) {
    let home = TempDir::new(name);
    let client = Client::start(home.path());
    (home, client)
}

/// Runs a script that writes "name pid" lines, `count` in all, and stays.
fn start_tree(client: &mut Client, id: &str, script: &str, count: usize) -> BTreeMap<String, u64> {
    client.start_process(id, json!({ "command": script }));
    let call = client.begin_output(id, 0, 1000);
    let mut text = String::new();
    while text.lines().count() < count || !text.ends_with('\n') {
        text.push_str(&client.read_until(call, "\n"));
    }
    client.cancel(call);
    client.answer(call).unwrap_err();
    let parse = |line: &str| line.split_once(' ').map(|(name, pid)| (name.to_string(), pid.parse().expect("a pid")));
    let pids: BTreeMap<String, u64> = text.lines().map(|line| parse(line).expect("a name and a pid")).collect();
    assert!(pids.len() == count && pids.values().all(|pid| is_alive(*pid)));
    pids
}

/// A child, a grandchild in a session of its own without any environment, and an orphan in yet another session.
const TREE: &str = "sleep 1000 & echo child $!
env -i /bin/sh -c 'setsid sh -c \"echo grandchild \\$\\$; sleep 1000; :\" & wait' &
(setsid sh -c 'echo orphan $$; sleep 1000; :' &)
wait";

#[test]
fn a_signal_reaches_the_process_by_name_or_number() {
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
    let unknown = client.signal("a", "SIGNOPE", "process").unwrap_err();
    assert_eq!((unknown.code.as_str(), unknown.reason.as_str()), ("invalid_argument", "unknown_signal"));
    let exited = client.signal("a", "TERM", "process").unwrap_err();
    assert_eq!((exited.code.as_str(), exited.reason.as_str()), ("failed_precondition", "not_running"));
    assert_eq!(client.signal("z", "TERM", "process").unwrap_err().reason, "no_such_process");
}

#[test]
fn a_signal_to_the_process_leaves_its_children_alone() {
    let (_home, mut client) = start("signal-alone");
    let pids = start_tree(&mut client, "p", "sleep 1000 & echo child $!; wait", 1);
    client.signal("p", "KILL", "process").unwrap();
    client.wait("p");
    assert!(is_alive(pids["child"]));
    client.signal("p", "KILL", "tree").unwrap();
    eventually("the end of what an exited process left behind", || !is_alive(pids["child"]));
}

#[test]
fn killing_the_tree_reaches_other_sessions_and_orphans() {
    let (_home, mut client) = start("signal-tree");
    let pids = start_tree(&mut client, "p", TREE, 3);
    let bystander = client.start_process("bystander", json!({ "argv": ["sleep", "1000"] }));
    client.signal("p", "SIGKILL", "tree").unwrap();
    assert_eq!(client.wait("p")["status"]["signal"], json!("SIGKILL"));
    eventually("the end of the tree", || !pids.values().any(|pid| is_alive(*pid)));
    assert!(is_alive(bystander));
}

#[test]
fn a_gentle_signal_to_the_tree_lets_everybody_end_by_themselves() {
    let (home, mut client) = start("signal-gentle");
    let script = "trap 'echo parent >> ended; exit 3' TERM
sh -c 'trap \"echo child >> ended; exit\" TERM; echo child $$; while :; do sleep 0.01; done' & while :; do sleep 0.01; done";
    let pids = start_tree(&mut client, "p", script, 1);
    client.signal("p", "TERM", "tree").unwrap();
    assert_eq!(client.wait("p")["status"]["exit_code"], json!(3));
    eventually("the child's end", || !is_alive(pids["child"]));
    let ended = std::fs::read_to_string(home.path().join("ended")).unwrap();
    assert!(ended.contains("parent") && ended.contains("child"), "{ended}");
}

#[test]
fn a_timeout_kills_the_tree_and_says_so() {
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
fn a_running_process_cannot_be_forgotten_and_an_exited_one_only_once() {
    let (_home, mut client) = start("signal-forget");
    client.start_process("p", json!({ "argv": ["sleep", "1000"] }));
    let running = client.call("process.forget", json!({ "process": "p" })).unwrap_err();
    assert_eq!((running.code.as_str(), running.reason.as_str()), ("failed_precondition", "still_running"));
    client.signal("p", "KILL", "process").unwrap();
    client.wait("p");
    client.call("process.forget", json!({ "process": "p" })).unwrap();
    assert_eq!(client.call("process.forget", json!({ "process": "p" })).unwrap_err().reason, "no_such_process");
    client.start_process("p", json!({ "argv": ["true"] }));
}

#[test]
fn a_fork_bomb_dies_with_its_tree_and_nobody_else_notices() {
    let (_home, mut client) = start("signal-bomb");
    // SAFETY: only reads the process's own id.
    if unsafe { libc::geteuid() } != 0 {
        println!("SKIP: only root can give the bomb a user whose processes are limited apart from ours");
        return;
    }
    // A shell that cannot fork ends, and could take the last of the bomb with it: each begins anew instead.
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
    eventually("the bomb going off", || count() > 50);
    let (output, _) = client.run("other", json!({ "argv": ["echo", "fine"] }));
    assert_eq!(output.of("stdout"), "fine\n");
    client.signal("bomb", "KILL", "tree").unwrap();
    client.wait("bomb");
    eventually("the end of all of the bomb", || count() == 0);
}

#[test]
fn a_process_that_stops_everything_of_its_user_cannot_stop_the_agent() {
    let (_home, mut client) = start("signal-stopper");
    // SAFETY: only reads the process's own id.
    if unsafe { libc::geteuid() } != 0 {
        println!("SKIP: only root can give the stopper a user of its own");
        return;
    }
    let stopper =
        json!({ "command": "trap '' TERM; echo on; while :; do kill -STOP -1; done", "user": "54323", "cwd": "/" });
    client.start_process("stopper", stopper);
    let call = client.begin_output("stopper", 0, 100);
    client.read_until(call, "on");
    for number in 0..100 {
        let id = format!("p{number}");
        client.start_process(&id, json!({ "argv": ["/bin/sleep", "1000"], "user": "54323", "cwd": "/" }));
        let missing = json!({ "argv": ["/no/such/program"], "user": "54323", "cwd": "/" });
        assert_eq!(client.call("process.spawn", missing).unwrap_err().reason, "no_such_program");
    }
}
