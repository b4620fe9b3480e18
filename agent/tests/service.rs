//! A command that the agent supervises as a service.

mod client;

use client::agent::{PROGRAM, TempDir};
use client::eventually;
use std::fs::read_to_string;
use std::process::{Child, Command, Stdio};

fn supervise(home: &TempDir, restart: &str, script: &str) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["--service", restart, "--", "/bin/sh", "-c", script]).current_dir(&**home).stderr(Stdio::piped());
    command.spawn().expect("the supervisor starts")
}

fn end(mut supervisor: Child) -> (Option<i32>, String) {
    let code = supervisor.wait().unwrap().code();
    let mut log = String::new();
    std::io::Read::read_to_string(&mut supervisor.stderr.take().unwrap(), &mut log).unwrap();
    (code, log)
}

fn signal(supervisor: &Child, signal: i32) {
    // SAFETY: signals a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(supervisor.id() as i32, signal) }, 0);
}

#[test]
fn restarts_a_command_that_fails_until_it_succeeds() {
    let home = TempDir::new("service-fails");
    let script = "echo run >> runs; [ $(wc -l < runs) -ge 3 ] || exit 7";
    let (code, log) = end(supervise(&home, "on-failure", script));
    assert_eq!(code, Some(0));
    assert_eq!(read_to_string(home.join("runs")).unwrap().lines().count(), 3);
    assert!(log.contains("exit status: 7; it starts again in 100 ms"), "{log}");
    assert!(log.contains("exit status: 7; it starts again in 200 ms"), "{log}");
}

#[test]
fn reports_the_exit_code_of_a_command_that_is_not_restarted() {
    let home = TempDir::new("service-never");
    let (code, log) = end(supervise(&home, "never", "exit 7"));
    assert_eq!(code, Some(7));
    assert!(log.contains("exit status: 7"), "{log}");
}

#[test]
fn always_restarts_a_command_even_after_success() {
    let home = TempDir::new("service-always");
    let supervisor = supervise(&home, "always", "echo run >> runs");
    eventually("three runs", || read_to_string(home.join("runs")).unwrap_or_default().lines().count() >= 3);
    signal(&supervisor, libc::SIGTERM);
    assert_eq!(end(supervisor).0, Some(0));
}

#[test]
fn passes_signals_on_and_ends_with_the_command_on_sigterm() {
    let home = TempDir::new("service-signals");
    let script = "trap 'echo reload >> seen' HUP; trap 'echo stop >> seen; exit 3' TERM; touch up
while :; do sleep 0.05; done";
    let supervisor = supervise(&home, "always", script);
    eventually("the command", || home.join("up").exists());
    signal(&supervisor, libc::SIGHUP);
    eventually("the reload", || read_to_string(home.join("seen")).is_ok());
    signal(&supervisor, libc::SIGTERM);
    assert_eq!(end(supervisor).0, Some(3));
    assert_eq!(read_to_string(home.join("seen")).unwrap(), "reload\nstop\n");
}

#[test]
fn ends_at_once_when_the_command_does_not_exist() {
    let output = Command::new(PROGRAM).args(["--service", "always", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot start the service \"/no/such/program\""));
}
