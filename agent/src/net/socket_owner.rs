//! Finds the process of a socket, within a budget: a search must not keep callers waiting.

use crate::os::real_ids::with_ids_of;
use crate::os::small_file::read_small_file;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    /// Code inside can choose it.
    pub program: Option<String>,
}

#[derive(Clone, Copy)]
pub enum Order {
    /// For a connection that was just made, which often belongs to a program that was just started.
    NewestFirst,
    /// For a listener, which children may have inherited.
    OldestFirst,
}

/// A socket and the user who opened it.
#[derive(Debug, Clone, Copy)]
pub struct Socket {
    pub inode: u64,
    pub uid: u32,
}

/// Owners by inode. Looks at no more than `most` processes and descriptors.
pub fn find(sockets: &[Socket], order: Order, most: usize) -> HashMap<u64, Owner> {
    let mut search = Search {
        wanted: sockets.iter().map(|socket| (format!("socket:[{}]", socket.inode), socket.inode)).collect(),
        found: HashMap::new(),
        most,
    };
    for pid in processes(order) {
        if search.is_over() {
            break;
        }
        search.most -= 1;
        let Ok(process) = fs::metadata(format!("/proc/{pid}")) else { continue };
        // A process that changed its user after it opened the socket is not found.
        if !sockets.iter().any(|socket| socket.uid == process.uid()) {
            continue;
        }
        if search.look_at(pid).is_err() {
            let _ = with_ids_of(process.uid(), process.gid(), || search.look_at(pid));
        }
    }
    search.found
}

struct Search {
    /// Inodes by the text that descriptors show.
    wanted: HashMap<String, u64>,
    found: HashMap<u64, Owner>,
    most: usize,
}

impl Search {
    fn is_over(&self) -> bool {
        self.most == 0 || self.found.len() == self.wanted.len()
    }

    /// Fails if only the user of the process may look at it.
    fn look_at(&mut self, pid: u32) -> io::Result<()> {
        for descriptor in descriptors(pid)? {
            if self.is_over() {
                break;
            }
            self.most -= 1;
            let target = match fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(_closed_meanwhile) => continue,
                Ok(target) => target,
            };
            if let Some(inode) = target.to_str().and_then(|target| self.wanted.get(target)) {
                self.found.entry(*inode).or_insert_with(|| Owner { pid, program: program(pid) });
            }
        }
        Ok(())
    }
}

/// The agent's own sockets belong to no process of a user.
fn processes(order: Order) -> Vec<u32> {
    let agent = std::process::id();
    let mut pids: Vec<u32> = numbers("/proc").unwrap_or_default().into_iter().filter(|pid| *pid != agent).collect();
    pids.sort_unstable();
    if matches!(order, Order::NewestFirst) {
        pids.reverse();
    }
    pids
}

/// The newest first, as far as the numbers tell.
fn descriptors(pid: u32) -> io::Result<Vec<u32>> {
    let mut numbers = numbers(&format!("/proc/{pid}/fd"))?;
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    Ok(numbers)
}

fn numbers(directory: &str) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(directory)?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn program(pid: u32) -> Option<String> {
    let name = read_small_file(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end_matches('\n').chars().take(64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    #[test]
    fn finds_the_program_that_holds_a_socket_but_not_the_agent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap();
        // SAFETY: only reads the process's own id.
        let socket = Socket { inode, uid: unsafe { libc::geteuid() } };
        assert_eq!(find(&[socket], Order::NewestFirst, 1_000_000), HashMap::new());
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::from(std::os::fd::OwnedFd::from(listener))).spawn();
        let child = child.as_mut().unwrap();
        let owner = Owner { pid: child.id(), program: Some("cat".into()) };
        assert_eq!(find(&[socket], Order::NewestFirst, 1_000_000), HashMap::from([(inode, owner)]));
        assert_eq!(find(&[socket], Order::OldestFirst, 0), HashMap::new());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
