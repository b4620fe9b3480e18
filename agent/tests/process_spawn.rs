//! Starting processes: the program, working directory, user and environment.

mod client;

use client::agent::{TempDir, agent_command, is_root, lacks_root};
use client::{Client, start, start_with};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn assert_refuses(client: &mut Client, params: Value, code: &str, reason: &str) -> String {
    client.assert_refuses("process.spawn", params, code, reason)
}

#[test]
fn runs_argv_directly_and_a_command_in_the_shell() {
    let (_home, mut client) = start("spawn-forms");
    let (output, _) = client.run("a", json!({ "argv": ["printf", "%s|", "a b", "$HOME", ""] }));
    assert_eq!(output.of("stdout"), "a b|$HOME||");
    let (output, done) = client.run("b", json!({ "command": "echo out; echo err >&2; exit 7" }));
    assert_eq!((output.of("stdout").as_str(), output.of("stderr").as_str()), ("out\n", "err\n"));
    assert_eq!(done["status"], json!({ "exit_code": 7, "signal": null, "timed_out": false, "out_of_memory": false }));
    assert_eq!(done["end_offset"], json!(8));
}

#[test]
fn starts_the_shell_of_the_sandbox_without_a_command() {
    let home = TempDir::new("spawn-shell");
    let mine = home.join("my shell");
    std::fs::write(&mine, "#!/bin/sh\necho \"$0: $(cat)\"\n").unwrap();
    std::fs::set_permissions(&mine, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = agent_command(&home);
    // As of an image with `ENV SHELL`.
    command.arg("--exit-on-eof").env("SHELL", &mine);
    let mut client = Client::spawn(&mut command);
    let (output, _) = client.run("image", json!({}));
    assert_eq!(output.of("stdout"), format!("{}: \n", mine.display()));
    let (_, done) = client.run("caller", json!({ "env": { "SHELL": "/bin/sh" } }));
    assert_eq!(done["status"]["exit_code"], json!(0));
    let processes = client.call("process.list", json!({})).unwrap()["processes"].clone();
    let argv =
        |id: &str| processes.as_array().unwrap().iter().find(|each| each["process"] == id).unwrap()["argv"].clone();
    assert_eq!((argv("image"), argv("caller")), (json!([mine]), json!(["/bin/sh"])));
    let both = json!({ "argv": ["true"], "command": "true" });
    assert_refuses(&mut client, both, "invalid_argument", "bad_params");
}

#[test]
fn runs_code_with_its_interpreter_and_removes_an_ephemeral_file() {
    let (home, mut client) = start("spawn-code");
    let path = home.join("code.sh");
    std::fs::write(&path, "echo $0").unwrap();
    let code = |ephemeral: bool| json!({ "language": "sh", "path": "code.sh", "ephemeral": ephemeral });
    let (output, _) = client.run("kept", json!({ "code": code(false) }));
    assert_eq!(output.of("stdout"), format!("{}\n", path.display()));
    assert!(path.exists());
    client.run("gone", json!({ "code": code(true) }));
    assert!(!path.exists());
}

#[test]
fn removes_an_ephemeral_file_when_its_process_cannot_start() {
    let (home, mut client) = start("spawn-ephemeral");
    let path = home.join("code.x");
    std::fs::write(&path, "").unwrap();
    let code = json!({ "language": "cobol", "path": path, "ephemeral": true });
    assert_refuses(&mut client, json!({ "code": code }), "invalid_argument", "unknown_language");
    assert!(!path.exists());
}

#[test]
fn refuses_an_unknown_language_and_lists_the_available_ones() {
    let (_home, mut client) = start("spawn-language");
    let languages = client.call("hello", json!({ "generation": 1 })).unwrap()["languages"].clone();
    assert!(languages.as_array().unwrap().contains(&json!("sh")));
    let code = json!({ "language": "cobol", "path": "x" });
    let message = assert_refuses(&mut client, json!({ "code": code }), "invalid_argument", "unknown_language");
    for language in languages.as_array().unwrap() {
        assert!(message.contains(language.as_str().unwrap()), "{message}");
    }
}

#[test]
fn refuses_a_spawn_with_more_than_one_command_or_with_bad_parameters() {
    let (_home, mut client) = start("spawn-one");
    for params in [
        json!({ "argv": ["true"], "command": "true" }),
        json!({ "argv": [] }),
        json!({ "argv": [""] }),
        json!({ "argv": ["a\0b"] }),
        json!({ "argv": ["true"], "timeout_ms": 0 }),
        json!({ "argv": ["true"], "journal_bytes": 4095 }),
        json!({ "argv": ["true"], "pty": { "rows": 0, "cols": 80 } }),
        json!({ "argv": ["true"], "process": "no spaces" }),
        json!({ "argv": ["true"], "process": "" }),
        json!({ "argv": ["true"], "process": "x".repeat(65) }),
        json!({ "argv": ["true"], "env": { "a=b": "c" } }),
        json!({ "argv": "true" }),
    ] {
        let failure = client.call("process.spawn", params.clone()).unwrap_err();
        assert_eq!(failure.code, "invalid_argument", "{params}: {}", failure.message);
    }
    assert_eq!(client.list(), Vec::<Value>::new());
}

#[test]
fn starts_no_second_process_for_a_repeated_spawn() {
    let (home, mut client) = start("spawn-twice");
    let params = json!({ "command": "echo x >> started", "process": "once" });
    client.call("process.spawn", params.clone()).unwrap();
    client.wait("once");
    assert_refuses(&mut client, params, "already_exists", "process_exists");
    assert_eq!(std::fs::read_to_string(home.join("started")).unwrap(), "x\n");
}

#[test]
fn gives_an_unnamed_process_an_id() {
    let (_home, mut client) = start("spawn-name");
    let answer = client.call("process.spawn", json!({ "argv": ["true"] })).unwrap();
    let id = answer["process"].as_str().unwrap().to_string();
    assert_eq!(client.wait(&id)["status"]["exit_code"], json!(0));
}

#[test]
fn reports_why_a_program_cannot_run() {
    let (home, mut client) = start("spawn-missing");
    let mut assert_refuses = |params: Value, code: &str, reason: &str, named: &str| {
        let message = client.assert_refuses("process.spawn", params, code, reason);
        assert!(message.contains(named), "{message}");
    };
    assert_refuses(json!({ "argv": ["no-such-program", "x"] }), "not_found", "no_such_program", "\"no-such-program\"");
    assert_refuses(json!({ "argv": ["/no/such/program"] }), "not_found", "no_such_program", "/no/such/program");
    let nowhere = json!({ "argv": ["true"], "cwd": "/no/such/place" });
    assert_refuses(nowhere, "not_found", "no_such_directory", "/no/such/place");

    let script = home.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_refuses(json!({ "argv": ["./script"] }), "not_found", "no_such_program", "interpreter");
    std::fs::write(&script, "\u{7f}nonsense").unwrap();
    assert_refuses(json!({ "argv": ["./script"] }), "failed_precondition", "not_executable", "./script");
    let huge = "x".repeat(200_000);
    assert_refuses(json!({ "argv": ["true", huge] }), "invalid_argument", "too_many_arguments", "too long");
}

#[test]
fn starts_with_a_clean_environment_that_the_caller_can_override() {
    let home = TempDir::new("spawn-env");
    let mut command = agent_command(&home);
    command.arg("--exit-on-eof").env_clear();
    command.env("HOME", &*home).env("GIVEN", "by provider").env("SANDPIPER_SECRET", "internal");
    let mut client = Client::spawn(&mut command);
    let (output, _) = client.run("e", json!({ "argv": ["env"], "env": { "LANG": "C", "MINE": "a=b" } }));
    let text = output.of("stdout");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let names: Vec<&str> = lines.iter().map(|line| line.split_once('=').unwrap().0).collect();
    assert_eq!(names, ["GIVEN", "HOME", "LANG", "LOGNAME", "MINE", "PATH", "SANDPIPER_PROCESS", "SHELL", "USER"]);
    for expected in ["LANG=C", "MINE=a=b", "GIVEN=by provider", "SANDPIPER_PROCESS=e"] {
        assert!(lines.contains(&expected), "{expected} in {text}");
    }
    assert!(lines.contains(&"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
}

#[test]
fn finds_programs_in_the_path_of_the_process() {
    let (home, mut client) = start("spawn-path");
    let program = home.join("bin/hello-from-here");
    std::fs::create_dir(home.join("bin")).unwrap();
    std::fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}/bin", home.display());
    let (output, _) = client.run("p", json!({ "argv": ["hello-from-here"], "env": { "PATH": path } }));
    assert_eq!(output.of("stdout"), "found\n");
    assert_refuses(&mut client, json!({ "argv": ["hello-from-here"] }), "not_found", "no_such_program");
}

#[test]
fn starts_in_the_home_and_resolves_relative_directories_from_it() {
    let (home, mut client) = start("spawn-cwd");
    std::fs::create_dir(home.join("sub")).unwrap();
    for (cwd, expected) in [(None, home.to_path_buf()), (Some("sub"), home.join("sub"))] {
        let (output, _) = client.run(cwd.unwrap_or("home"), json!({ "argv": ["pwd", "-P"], "cwd": cwd }));
        assert_eq!(output.of("stdout"), format!("{}\n", expected.canonicalize().unwrap().display()));
    }
}

#[test]
fn lets_a_process_inherit_nothing_from_the_agent() {
    let (_home, mut client) = start("spawn-clean");
    let script = "ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; ulimit -n; \
                  cut -d' ' -f5,6 /proc/$$/stat; echo $$";
    let (output, _) = client.run("c", json!({ "command": script }));
    let text = output.of("stdout");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("0 1 2 3 "), "descriptors: {text}");
    assert!(lines[0].ends_with("SigBlk:\t0000000000000000"), "{text}");
    assert_eq!(lines[1], "SigIgn:\t0000000000000000");
    assert_eq!(lines[2], "0022");
    let pid = lines[5];
    assert_eq!(lines[4], format!("{pid} {pid}"), "it leads its own group and session");
    let mut limit: libc::rlimit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills a plain struct.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    assert_eq!(lines[3], limit.rlim_cur.to_string(), "the limit on open files is that of the agent at its start");
}

#[test]
fn runs_processes_as_any_user_only_if_the_agent_is_root() {
    let (_home, mut client) = start("spawn-user");
    if !is_root() {
        assert_refuses(&mut client, json!({ "argv": ["id"], "user": "0" }), "permission_denied", "other_user");
        return;
    }
    let mut ids = |user: &str| {
        let id = user.replace(':', "-");
        client.run(&id, json!({ "command": "id -u; id -g; id -G", "user": user, "cwd": "/" })).0.of("stdout")
    };
    assert_eq!(ids("12345:54321"), "12345\n54321\n54321\n");
    assert_eq!(ids("12345"), "12345\n12345\n12345\n");
    assert!(ids("nobody").starts_with("65534\n"));
    let unknown = json!({ "argv": ["id"], "user": "no-such-user" });
    assert_refuses(&mut client, unknown, "invalid_argument", "unknown_user");
}

#[test]
fn runs_processes_as_the_default_user_unless_the_call_names_another() {
    if lacks_root("only root can start processes as another user") {
        return;
    }
    let (_home, mut client) = start_with("spawn-default-user", &["--default-user", "nobody"]);
    let (output, _) = client.run("n", json!({ "command": "id -un; pwd; echo $USER" }));
    assert_eq!(output.of("stdout"), "nobody\n/\nnobody\n");
    assert_eq!(client.list()[0]["user"], json!("nobody"));
    let code = client.call("exec_code", json!({ "lang": "sh", "code": "stat -c '%U %a' $0; echo $0" })).unwrap();
    let text = code["stdout"].as_str().unwrap();
    let (owner, path) = text.trim().split_once('\n').unwrap();
    assert_eq!(owner, "nobody 600");
    assert!(std::fs::metadata(path).is_err(), "{path} is removed");
}

#[test]
fn refuses_a_working_directory_that_the_user_may_not_enter() {
    let (home, mut client) = start("spawn-closed");
    if lacks_root("only root can start processes as another user") {
        return;
    }
    std::fs::set_permissions(&*home, std::fs::Permissions::from_mode(0o700)).unwrap();
    let params = json!({ "argv": ["/bin/true"], "user": "12345", "cwd": &*home });
    assert_refuses(&mut client, params, "permission_denied", "not_permitted");
}
