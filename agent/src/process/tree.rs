//! Finds a process and its descendants in /proc.

use super::environment::PROCESS_ID_VARIABLE;
use crate::os::user;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

/// A bound for a tree that grows as fast as it is found.
const MAX_ROUNDS: usize = 64;
const MAX_ENVIRONMENT_BYTES: u64 = 1024 * 1024;

pub struct Root<'a> {
    /// The descendants carry it in their environment.
    pub id: &'a str,
    pub pid: i32,
    /// Another process may have the pid of an exited one.
    pub has_exited: bool,
}

struct Entry {
    parent: i32,
    group: i32,
    session: i32,
}

/// Sends a signal to every member. Before SIGKILL it stops them all, so that hardly any escapes by forking.
pub fn signal(root: &Root, signal: i32) {
    let reached = match signal {
        libc::SIGKILL => kill_all(|| members(root)),
        other => each_new(|| members(root), other),
    };
    // Without /proc the signal can reach only the process group.
    if reached.is_empty() && !root.has_exited {
        send(-root.pid, signal);
    }
}

/// Kills all descendants of the agent.
pub fn kill_everything() {
    kill_all(|| descendants(&scan(), [std::process::id() as i32].into()));
}

/// Sends SIGTERM to all descendants of the agent.
pub fn terminate_everything() {
    each_new(|| descendants(&scan(), [std::process::id() as i32].into()), libc::SIGTERM);
}

/// Whether the agent has descendants.
pub fn has_processes() -> bool {
    !descendants(&scan(), [std::process::id() as i32].into()).is_empty()
}

/// The processes of the list whose trees contain `pid`.
pub fn owners<'a>(pid: i32, roots: &[Root<'a>]) -> Vec<&'a str> {
    let entries = scan();
    let agent = std::process::id() as i32;
    let mut line = vec![pid];
    // A loop in what /proc shows must not hold the agent.
    while let Some(entry) = entries.get(&line[line.len() - 1]).filter(|_| line.len() <= entries.len()) {
        if entry.parent == agent {
            break;
        }
        line.push(entry.parent);
    }
    let groups = line.iter().filter_map(|at| entries.get(at)).flat_map(|entry| [entry.group, entry.session]);
    let related: BTreeSet<i32> = line.iter().copied().chain(groups).collect();
    let environment = line.last().and_then(|top| read_environment(*top).ok()).unwrap_or_default();
    let is_owner = |root: &&Root| related.contains(&root.pid) || names(&environment, root.id);
    roots.iter().filter(is_owner).map(|root| root.id).collect()
}

/// A fork in progress can complete after SIGSTOP but not after SIGKILL, so this searches again for new children.
fn kill_all(find: impl Fn() -> BTreeSet<i32>) -> BTreeSet<i32> {
    let mut killed = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let stopped = each_new(|| &find() - &killed, libc::SIGSTOP);
        if stopped.is_empty() {
            break;
        }
        for pid in &stopped {
            send(*pid, libc::SIGKILL);
        }
        killed.extend(stopped);
    }
    killed
}

/// Searches until it finds no new process.
fn each_new(find: impl Fn() -> BTreeSet<i32>, signal: i32) -> BTreeSet<i32> {
    let mut reached = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let new: Vec<i32> = find().difference(&reached).copied().collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            send(pid, signal);
            reached.insert(pid);
        }
    }
    reached
}

fn send(pid: i32, signal: i32) {
    // SAFETY: the pid names a process found in /proc, or the group of a child that has not been waited for.
    unsafe { libc::kill(pid, signal) };
}

/// Considers only descendants of the agent: orphans return to it, so nothing else can be part of the tree. For the same
/// reason only the agent's own children need the check of their environment.
fn members(root: &Root) -> BTreeSet<i32> {
    let entries = scan();
    let agent = std::process::id() as i32;
    let ours = descendants(&entries, [agent].into());
    let reused = root.has_exited && entries.contains_key(&root.pid);
    let mut found = BTreeSet::new();
    for pid in ours {
        let Some(entry) = entries.get(&pid) else { continue };
        let related = [pid, entry.group, entry.session].contains(&root.pid);
        if (related && !reused) || (entry.parent == agent && has_process_id(pid, root.id)) {
            found.insert(pid);
        }
    }
    let below = descendants(&entries, found.clone());
    found.extend(below);
    found
}

/// All descendants of the given pids, without those pids.
fn descendants(entries: &BTreeMap<i32, Entry>, of: BTreeSet<i32>) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, entry) in entries {
        children.entry(entry.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<i32> = of.into_iter().collect();
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

fn scan() -> BTreeMap<i32, Entry> {
    let mut entries = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(entry) =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|text| parse_stat(&text))
        {
            entries.insert(pid, entry);
        }
    }
    entries
}

/// None for a zombie. The name in parentheses may contain anything, so fields count from its end.
fn parse_stat(text: &str) -> Option<Entry> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let mut number = || fields.next()?.parse().ok();
    Some(Entry { parent: number()?, group: number()?, session: number()? })
}

fn has_process_id(pid: i32, id: &str) -> bool {
    read_environment(pid).is_ok_and(|environment| names(&environment, id))
}

fn names(environment: &[u8], id: &str) -> bool {
    let wanted = format!("{PROCESS_ID_VARIABLE}={id}");
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

fn read_environment(pid: i32) -> io::Result<Vec<u8>> {
    let mut environment = Vec::new();
    open_environment(pid)?.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut environment)?;
    Ok(environment)
}

/// Opens it as the owner of the process: root needs a privilege for the processes of others and may lack it.
fn open_environment(pid: i32) -> io::Result<File> {
    let owner = std::fs::metadata(format!("/proc/{pid}"))?;
    let (uid, gid) = user::own_ids();
    // SAFETY: the agent has one thread, and its filesystem ids are restored before other code runs.
    unsafe {
        libc::setfsgid(owner.gid());
        libc::setfsuid(owner.uid());
    }
    let file = File::open(format!("/proc/{pid}/environ"));
    // SAFETY: as above.
    unsafe {
        libc::setfsuid(uid);
        libc::setfsgid(gid);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_process_name_with_parentheses_and_skips_zombies() {
        let entry = parse_stat("7 (a) Z 1 (x) S 3 4 5 0 -1").unwrap();
        assert_eq!((entry.parent, entry.group, entry.session), (3, 4, 5));
        assert!(parse_stat("7 (dead) Z 3 4 5").is_none());
        assert!(parse_stat("").is_none());
    }

    #[test]
    fn finds_descendants_at_any_depth_and_stops_at_loops() {
        let entry = |parent| Entry { parent, group: 0, session: 0 };
        let entries = [(2, entry(1)), (3, entry(2)), (4, entry(3)), (5, entry(6)), (6, entry(5))].into();
        assert_eq!(descendants(&entries, [1].into()), [2, 3, 4].into());
        assert_eq!(descendants(&entries, [5].into()), [5, 6].into());
    }
}
