//! The agent makes directories of `--open-dir` writable before it serves callers.

mod client;

use client::Client;
use client::agent::{TempDir, agent_command, mode};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn start(home: &Path, dirs: &[&str]) -> Client {
    let mut command = agent_command(home);
    for dir in dirs {
        command.arg("--open-dir").arg(home.join(dir));
    }
    Client::spawn(command.arg("--exit-on-eof"))
}

#[test]
fn makes_an_open_directory_writable_for_every_user() {
    let home = TempDir::new("open-dirs");
    let dirs = ["data", "cache"].map(|name| home.join(name));
    for dir in &dirs {
        std::fs::create_dir(dir).unwrap();
        std::fs::set_permissions(dir, Permissions::from_mode(0o700)).unwrap();
    }
    let mut client = start(&home, &["data", "cache"]);
    assert!(client.call("ping", json!({})).is_ok());
    assert_eq!(dirs.map(|dir| mode(&dir)), [0o777, 0o777]);
}

#[test]
fn ignores_symlinks_and_missing_directories() {
    let home = TempDir::new("open-dirs-link");
    let target = home.join("target");
    std::fs::create_dir(&target).unwrap();
    std::fs::set_permissions(&target, Permissions::from_mode(0o700)).unwrap();
    symlink(&target, home.join("link")).unwrap();
    let mut client = start(&home, &["link", "missing"]);
    assert!(client.call("ping", json!({})).is_ok());
    assert_eq!(mode(&target), 0o700);
}
