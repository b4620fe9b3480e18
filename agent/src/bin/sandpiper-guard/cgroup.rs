use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "sandpiper-";
/// The length of the random name of a machine that was prepared before it had a sandbox.
const PREPARED_DIGITS: usize = 16;

/// Kills all processes once; true when there were none.
pub fn kill(cgroup: &Path) -> bool {
    let processes = read_processes(cgroup);
    if processes.is_empty() {
        return true;
    }
    if kill_as_one(cgroup).is_err() {
        // The kernel lists a process of another namespace as 0, which kill() takes for the guard's own group.
        let pids = processes.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1);
        // A process may have exited already.
        // SAFETY: plain calls without memory.
        pids.for_each(|pid: i32| unsafe { _ = libc::kill(pid, libc::SIGKILL) });
    }
    false
}

/// Kills all processes of a container once; true when there were none. Engines name its cgroups after its id.
pub fn kill_container(id: &str) -> bool {
    let mut cgroups = Vec::new();
    find_named(Path::new(ROOT), id, &mut cgroups);
    kill_all(&cgroups)
}

/// Collects the cgroups whose names contain the id, with all cgroups below them.
fn find_named(directory: &Path, id: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // Links of controllers lead to hierarchies that are listed anyway.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        // Podman's monitor has a cgroup of its own and must report the container's end.
        let is_named = path.to_str().is_some_and(|path| path.contains(id) && !path.contains("conmon"));
        find_named(&path, id, found);
        if is_named {
            found.push(path);
        }
    }
}

/// Kills in each of them; true when there was nothing left.
pub fn kill_all(cgroups: &[PathBuf]) -> bool {
    let left = cgroups.iter().filter(|cgroup| !kill(cgroup)).count();
    left == 0
}

pub fn has_processes(cgroup: &Path) -> bool {
    !read_processes(cgroup).is_empty()
}

fn read_processes(cgroup: &Path) -> String {
    fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default()
}

/// Kernels before 5.14 and cgroups of version 1 lack this file. Opening it must not create it.
fn kill_as_one(cgroup: &Path) -> io::Result<()> {
    File::options().write(true).open(cgroup.join("cgroup.kill"))?.write_all(b"1")
}

/// Whether the cgroup is the sandbox's own, or that of a machine that was prepared without a sandbox.
pub fn is_instance(path: &Path, id: &str) -> bool {
    is_cgroup(path, |name| {
        // The suffix distinguishes the nodes of one host.
        let is_own = name.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        let digits = name.split('-').next().unwrap_or_default();
        is_own || (digits.len() == PREPARED_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

/// Whether the cgroup is that of a machine.
pub fn is_machine(path: &Path) -> bool {
    is_cgroup(path, |_| true)
}

/// Accepts a missing cgroup: it may not exist yet, or any more. A link must not lead to another cgroup.
fn is_cgroup(path: &Path, is_named: impl Fn(&str) -> bool) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let has_name = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
        name.is_some_and(&is_named)
    };
    let leads_there = match fs::canonicalize(path) {
        Ok(real) => has_name(&real) && is_on_cgroup_filesystem(&real),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    path.is_absolute() && is_plain && has_name(path) && leads_there
}

/// Elsewhere a file named cgroup.procs could hold any numbers.
fn is_on_cgroup_filesystem(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path is NUL-terminated, and the kernel fills the structure unless it reports an error.
    unsafe {
        libc::statfs(path.as_ptr(), found.as_mut_ptr()) == 0
            && [libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC].contains(&found.assume_init().f_type)
    }
}
