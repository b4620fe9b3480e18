//! The seed protocol: `exec` and `exec_code`.

mod client;

use client::processes::is_alive;
use client::{Client, eventually, start};
use serde_json::{Value, json};

fn exec(client: &mut Client, params: Value) -> Value {
    client.call("exec", params).expect("the command runs")
}

#[test]
fn answers_with_output_and_exit_code() {
    let (_home, mut client) = start("exec-answer");
    assert_eq!(
        exec(&mut client, json!({ "cmd": "echo out; echo err >&2; exit 3" })),
        json!({
            "exit_code": 3, "stdout": "out\n", "stderr": "err\n", "signal": null,
            "timed_out": false, "out_of_memory": false, "truncated": false,
        })
    );
    assert_eq!(client.list(), Vec::<Value>::new(), "the agent forgets the process");
}

#[test]
fn accepts_stdin_directory_and_environment() {
    let (_home, mut client) = start("exec-params");
    let params = json!({ "cmd": "cat; pwd; echo $X", "stdin": "in\n", "cwd": "/", "env": { "X": "y" } });
    assert_eq!(exec(&mut client, params)["stdout"], json!("in\n/\ny\n"));
    let unread = json!({ "cmd": "exit 0", "stdin": "x".repeat(500_000) });
    assert_eq!(exec(&mut client, unread)["exit_code"], json!(0));
}

#[test]
fn reports_a_signal_by_name_and_as_a_shell_exit_code() {
    let (_home, mut client) = start("exec-signal");
    let answer = exec(&mut client, json!({ "cmd": "kill -SEGV $$" }));
    assert_eq!((&answer["exit_code"], &answer["signal"]), (&json!(139), &json!("SIGSEGV")));
}

#[test]
fn kills_the_whole_process_tree_on_timeout() {
    let (_home, mut client) = start("exec-timeout");
    let answer = exec(&mut client, json!({ "cmd": "setsid sleep 1000 & echo $!; sleep 1000", "timeout_ms": 2000 }));
    assert_eq!((&answer["timed_out"], &answer["exit_code"]), (&json!(true), &json!(137)));
    let child = answer["stdout"].as_str().unwrap().trim().parse().unwrap();
    eventually("the child's end", || !is_alive(child));
}

#[test]
fn kills_the_whole_process_tree_on_cancel() {
    let (home, mut client) = start("exec-cancel");
    let cmd = "setsid sleep 1000 & echo $! $$ > pids.new; mv pids.new pids; sleep 1000";
    let call = client.begin("exec", json!({ "cmd": cmd }));
    let pids = home.join("pids");
    eventually("the command to start", || pids.exists());
    client.assert_cancels(call);
    for pid in std::fs::read_to_string(pids).unwrap().split_whitespace() {
        eventually("all processes to end", || !is_alive(pid.parse().unwrap()));
    }
    eventually("the agent to forget the process", || client.list().is_empty());
}

#[test]
fn truncates_long_output_and_reports_it() {
    let (_home, mut client) = start("exec-long");
    let answer = exec(&mut client, json!({ "cmd": "seq 1 1000000" }));
    let stdout = answer["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n3\n") && stdout.len() == 256 * 1024);
    assert_eq!(answer["truncated"], json!(true));
    let zeros = exec(&mut client, json!({ "cmd": "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2" }));
    assert_eq!((&zeros["truncated"], &zeros["exit_code"]), (&json!(true), &json!(0)));
}

#[test]
fn keeps_a_character_that_spans_two_writes() {
    let (_home, mut client) = start("exec-text");
    let cmd = "printf '\\303'; printf '\\251'; printf '\\377'";
    assert_eq!(exec(&mut client, json!({ "cmd": cmd }))["stdout"], json!("é\u{fffd}"));
}

#[test]
fn runs_code_of_any_size_in_every_available_language() {
    let (_home, mut client) = start("exec-code");
    let hello = client.call("hello", json!({ "generation": 1 })).unwrap();
    let long = "#".repeat(300_000);
    for (language, code) in [
        ("python", format!("print('é', 6*7)\n{long}")),
        ("javascript", format!("console.log('é', 6*7)\n//{long}")),
        ("bash", format!("[[ a == a ]] && echo é $((6*7))\n{long}")),
        ("sh", format!("echo é $((6*7))\n{long}")),
    ] {
        let answer = client.call("exec_code", json!({ "lang": language, "code": code }));
        if hello["languages"].as_array().unwrap().contains(&json!(language)) {
            assert_eq!(answer.unwrap()["stdout"], json!("é 42\n"), "{language}");
        } else {
            assert_eq!(answer.unwrap_err().reason, "unknown_language", "{language}");
        }
    }
}

#[test]
fn removes_the_source_file_also_when_the_code_cannot_run() {
    let (_home, mut client) = start("exec-source");
    let answer = client.call("exec_code", json!({ "lang": "sh", "code": "echo $0; exit 4" })).unwrap();
    assert_eq!(answer["exit_code"], json!(4));
    let path = answer["stdout"].as_str().unwrap().trim();
    assert!(path.starts_with("/tmp/") && !std::path::Path::new(path).exists(), "{path}");
    client.assert_refuses(
        "exec_code",
        json!({ "lang": "cobol", "code": "marker-of-this-test" }),
        "invalid_argument",
        "unknown_language",
    );
    let left = std::fs::read_dir("/tmp").unwrap().flatten().any(|entry| {
        entry.file_name().to_string_lossy().starts_with(".sandpiper-")
            && std::fs::read_to_string(entry.path()).is_ok_and(|text| text == "marker-of-this-test")
    });
    assert!(!left);
}
