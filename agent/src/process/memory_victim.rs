//! Finds the process that uses the most memory.

use crate::os::user;
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

const BLOCK_BYTES: u64 = 512;

/// The largest process that `is_spared` does not name; never the agent.
pub fn find(is_spared: impl Fn(i32) -> bool) -> Option<i32> {
    let agent = std::process::id() as i32;
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let sized = pids.filter(|pid| *pid != agent && !is_spared(*pid)).filter_map(|pid| Some((size(pid)?, pid)));
    sized.max().map(|(_, pid)| pid)
}

/// None for a process that has ended.
fn size(pid: i32) -> Option<u64> {
    let resident = parse_resident(&fs::read_to_string(format!("/proc/{pid}/statm")).ok()?)?;
    // SAFETY: only reads a constant of the system.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
    Some(resident * page_bytes + as_owner(pid, || unmapped_bytes(pid)).ok()?)
}

/// Zero for a zombie.
fn parse_resident(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// gVisor compares the real ids before it shows the descriptors of another process, unless the agent has a privilege that it
/// lacks.
fn as_owner<T>(pid: i32, act: impl FnOnce() -> T) -> io::Result<T> {
    let owner = fs::metadata(format!("/proc/{pid}"))?;
    let (uid, gid) = user::own_ids();
    // SAFETY: the agent has one thread, and its real ids are restored before other code runs.
    let set_real = |uid: u32, gid: u32| unsafe {
        libc::syscall(libc::SYS_setresgid, gid, u32::MAX, u32::MAX);
        libc::syscall(libc::SYS_setresuid, uid, u32::MAX, u32::MAX);
    };
    set_real(owner.uid(), owner.gid());
    let outcome = act();
    set_real(uid, gid);
    Ok(outcome)
}

/// Files in memory without a name count for no process until it maps them.
fn unmapped_bytes(pid: i32) -> u64 {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let memory_files = entries.map(|entry| entry.path()).filter(|path| {
        fs::read_link(path).is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
    });
    memory_files.filter_map(|path| fs::metadata(path).ok()).map(|file| file.blocks() * BLOCK_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::FromRawFd;

    #[test]
    fn reads_the_resident_pages() {
        assert_eq!(parse_resident("100 42 7 1 0 30 0\n"), Some(42));
        assert_eq!(parse_resident(""), None);
    }

    #[test]
    fn counts_memory_files_that_a_process_only_writes_to() {
        let own = std::process::id() as i32;
        let before = unmapped_bytes(own);
        // SAFETY: the new descriptor has no other owner.
        let mut file = unsafe { fs::File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
        file.write_all(&[1; 1 << 20]).unwrap();
        assert!(unmapped_bytes(own) >= before + (1 << 20));
    }

    #[test]
    fn never_finds_the_agent() {
        assert_ne!(find(|_| false), Some(std::process::id() as i32));
        assert_eq!(find(|_| true), None);
    }
}
