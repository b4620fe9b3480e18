//! The status of a process that the kernel kills because memory runs out.

mod client;

use client::Client;
use client::agent::{PROGRAM, TempDir};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIMIT_BYTES: &str = "67108864";

/// A cgroup with a memory limit, removed on drop.
struct Cgroup {
    /// Where the agent expects its own cgroup.
    root: &'static str,
    path: PathBuf,
}

impl Cgroup {
    fn create() -> Result<Self, String> {
        let name = format!("sandpiper-test-{}", std::process::id());
        let (root, file) = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            ("/sys/fs/cgroup", "memory.max")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        };
        let path = Path::new(root).join(name);
        fs::create_dir(&path).map_err(|error| format!("cannot make the cgroup {}: {error}", path.display()))?;
        let cgroup = Self { root, path };
        let file = cgroup.path.join(file);
        fs::write(&file, LIMIT_BYTES).map_err(|error| format!("cannot limit memory by {}: {error}", file.display()))?;
        // Exists only where the kernel counts swap.
        let _ = fs::write(cgroup.path.join("memory.memsw.limit_in_bytes"), LIMIT_BYTES);
        let _ = fs::write(cgroup.path.join("memory.swap.max"), "0");
        Ok(cgroup)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

#[test]
fn reports_out_of_memory_only_for_the_process_that_the_kernel_killed() {
    let cgroup = match Cgroup::create() {
        Ok(cgroup) => cgroup,
        Err(problem) => {
            println!("SKIP: {problem}");
            return;
        }
    };
    let home = TempDir::new("memory");
    let mut command = Command::new("unshare");
    let script = "mount --make-rprivate / && mount --bind \"$1\" \"$2\" && echo $$ > \"$2/cgroup.procs\" && \
                  exec \"$0\" --exit-on-eof";
    command.args(["--mount", "sh", "-c", script, PROGRAM]);
    let mut client = Client::spawn(command.arg(&cgroup.path).arg(cgroup.root).env("HOME", &*home));
    let mut run = |cmd: &str| {
        let answer = client.call("exec", json!({ "cmd": cmd })).expect("the command runs");
        (answer["signal"].clone(), answer["out_of_memory"].clone())
    };
    // Without a newline, tail keeps everything it reads.
    assert_eq!(run("exec tail /dev/zero"), (json!("SIGKILL"), json!(true)));
    assert_eq!(run("kill -KILL $$"), (json!("SIGKILL"), json!(false)));
    assert_eq!(run("tail /dev/zero; exit 0"), (json!(null), json!(false)), "only its child was killed");
    assert_eq!(run("kill -KILL $$"), (json!("SIGKILL"), json!(false)), "that kill counts for no other process");
    drop(client);
}
