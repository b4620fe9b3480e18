//! The process of the built agent, and what it runs in.

use super::becomes_true;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sandpiper-agent");

/// An agent whose home, working directory and journals are in `home`.
pub fn agent_command(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("--journal-dir").arg(home.join("journals")).env("HOME", home).current_dir(home);
    command
}

/// Stopped on drop, with its processes.
pub struct AgentProcess(pub Child);

impl AgentProcess {
    pub fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("the agent starts"))
    }

    pub fn serve(home: &Path, channel: &str) -> Self {
        let mut command = agent_command(home);
        Self::spawn(command.args(["--channel", channel]).stdin(Stdio::null()).stderr(Stdio::piped()))
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        stop(&mut self.0);
    }
}

/// SIGTERM lets the agent kill the processes it has started.
pub fn stop(agent: &mut Child) {
    if let Ok(None) = agent.try_wait() {
        // SAFETY: the child has not been waited for, so the pid is its own.
        unsafe { libc::kill(agent.id() as i32, libc::SIGTERM) };
    }
    if !becomes_true(Duration::from_secs(5), || matches!(agent.try_wait(), Ok(Some(_)) | Err(_))) {
        let _ = agent.kill();
        let _ = agent.wait();
    }
}

/// An empty directory, removed on drop.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sandpiper-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The permission bits of an entry.
pub fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

pub fn is_root() -> bool {
    // SAFETY: only reads the process's own id.
    unsafe { libc::geteuid() == 0 }
}

/// Prints why the test must be skipped, if it must.
pub fn lacks_root(why: &str) -> bool {
    if !is_root() {
        println!("SKIP: {why}");
    }
    !is_root()
}
