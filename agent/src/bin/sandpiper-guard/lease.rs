use crate::cgroup;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The suffix of a lease whose targets are dead.
pub const ENDED: &str = ".ended";
/// A node writes no larger lease.
const MAX_LEASE_BYTES: u64 = 64 * 1024;

/// The id of a container is random.
const CONTAINER_DIGITS: usize = 64;

/// A sandbox's right to run, written by the node as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// In milliseconds of CLOCK_BOOTTIME.
    pub deadline_ms: u64,
    /// How much later another node may start the sandbox.
    pub grace_ms: u64,
    pub targets: Vec<Target>,
}

/// Something to kill. A target that does not exist yet counts as dead.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// All processes in a cgroup, by its directory.
    Cgroup(PathBuf),
    /// The running containers of the sandbox, by their labels.
    #[serde(rename_all = "camelCase")]
    Containers { engine: Engine, home: String, machine: Option<Machine> },
    /// All processes in the cgroups of a container on this host, by its id: works without its engine.
    Container(String),
    /// A program with its arguments, which kills and then exits with 0.
    Command(Vec<String>),
}

/// A container engine that answers without TLS.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// The path of a Unix socket, or `host:port`.
    pub address: String,
    pub api_version: String,
}

/// The virtual machine of an engine; it is killed if the engine does not answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub cgroups: Vec<PathBuf>,
}

/// The sandbox's id, from the name of its lease.
pub fn id_of(name: &str) -> &str {
    name.strip_suffix(ENDED).unwrap_or(name)
}

impl Lease {
    /// None for a file that is not a lease.
    pub fn read(directory: &Path, name: &str) -> Option<Self> {
        if name.starts_with('.') {
            return None;
        }
        let mut text = String::new();
        File::open(directory.join(name)).ok()?.take(MAX_LEASE_BYTES).read_to_string(&mut text).ok()?;
        let written: Self = serde_json::from_str(&text).ok()?;
        Some(if name.ends_with(ENDED) { Self { deadline_ms: 0, ..written } } else { written })
    }
}

impl Target {
    /// The guard kills only what can belong to the lease's own sandbox.
    pub fn belongs_to(&self, id: &str) -> bool {
        match self {
            Self::Cgroup(path) => cgroup::is_instance(path, id),
            Self::Containers { home, machine, .. } => {
                let cgroups = machine.iter().flat_map(|machine| &machine.cgroups);
                is_word(home) && is_word(id) && cgroups.into_iter().all(|path| cgroup::is_machine(path))
            }
            Self::Container(container) => container.len() == CONTAINER_DIGITS && is_word(container),
            Self::Command(words) => words.iter().any(|word| word == id),
        }
    }
}

/// Text that needs no escape in a request.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(json: &str) -> Target {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_target_belongs_only_to_the_sandbox_that_it_names() {
        assert!(target(r#"{"command":["node","kill.ts","abc"]}"#).belongs_to("abc"));
        assert!(!target(r#"{"command":["node","kill.ts","abcd"]}"#).belongs_to("abc"));
        assert!(target(&format!(r#"{{"container":"{}"}}"#, "0a".repeat(32))).belongs_to("abc"));
        assert!(!target(r#"{"container":"docker"}"#).belongs_to("abc"));
    }

    #[test]
    fn containers_are_named_by_plain_words() {
        let json =
            |home| format!(r#"{{"containers":{{"engine":{{"address":"/a","apiVersion":"1.51"}},"home":"{home}"}}}}"#);
        assert!(target(&json("0a1b")).belongs_to("abc"));
        assert!(!target(&json("0a\\\"]}")).belongs_to("abc"));
    }
}
