mod client;

use client::start;
use serde_json::json;
use std::process::Command;

#[test]
fn reports_all_metrics_with_plausible_values() {
    let (_home, mut agent) = start("metrics");
    let metrics = agent.call("system.metrics", json!({})).unwrap();
    let figure = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name} is missing in {metrics}"));
    assert!(figure("cpu_ms") > 0.0);
    assert!(figure("memory_used_bytes") > 0.0);
    assert!(figure("memory_total_bytes") > figure("memory_used_bytes"));
    assert!(figure("disk_used_bytes") > 0.0);
    assert!(figure("disk_total_bytes") > figure("disk_used_bytes"));
    assert!(figure("processes") >= 2.0);
    assert!(figure("uptime_ms") > 0.0);
    for name in ["memory_used_bytes", "memory_total_bytes", "disk_used_bytes", "disk_total_bytes", "processes"] {
        assert!(metrics[name].is_u64(), "{name} is an integer in {metrics}");
    }
}

#[test]
fn counts_the_cpu_time_of_exited_processes() {
    let (_home, mut agent) = start("metrics-cpu");
    let mut cpu_ms = || agent.call("system.metrics", json!({})).unwrap()["cpu_ms"].as_f64().unwrap();
    let before = cpu_ms();
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    assert!(Command::new("sh").args(["-c", busy]).status().unwrap().success());
    assert!(cpu_ms() > before);
}

#[test]
fn counts_running_processes() {
    let (_home, mut agent) = start("metrics-processes");
    let mut count = || agent.call("system.metrics", json!({})).unwrap()["processes"].as_u64().unwrap();
    let before = count();
    let mut sleepers: Vec<_> = (0..100).map(|_| Command::new("sleep").arg("600").spawn().unwrap()).collect();
    let with_sleepers = count();
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
    // Other programs on this machine start and stop too.
    assert!(with_sleepers > before + 50, "{before}, then {with_sleepers}");
}
