//! The size of the release build, which this test builds.

mod client;

use client::Client;
use client::agent::TempDir;
use serde_json::{Value, json};
use std::process::Command;

const MIB: u64 = 1024 * 1024;

fn release_binary() -> String {
    let build = Command::new(env!("CARGO"))
        .args(["build", "--release", "--bin", "sandpiper-agent", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let messages = String::from_utf8(build.stdout).expect("text");
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let binary = artifacts.filter_map(|artifact| artifact["executable"].as_str().map(str::to_string)).next_back();
    binary.expect("cargo names the binary")
}

#[test]
fn takes_at_most_2_5_mib_on_disk_and_2_mib_in_memory() {
    let binary = release_binary();
    let size = std::fs::metadata(&binary).unwrap().len();
    assert!(size <= 5 * MIB / 2, "{size} bytes");

    let home = TempDir::new("footprint");
    let mut client = Client::spawn(Command::new(binary).arg("--exit-on-eof").env("HOME", &*home));
    client.call("hello", json!({ "generation": 1 })).unwrap();
    for number in 0..20 {
        client.run(&format!("p{number}"), json!({ "argv": ["echo", "hello"] }));
        client.call("process.forget", json!({ "process": format!("p{number}") })).unwrap();
    }
    assert!(client.memory_kib() <= 2048, "{} KiB resident", client.memory_kib());
}
