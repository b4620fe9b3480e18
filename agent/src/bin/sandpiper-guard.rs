//! Ends the instances of a node that does not renew its leases, whatever has become of the node.
//!
//! usage: sandpiper-guard DIRECTORY
//!
//! DIRECTORY/<id> is a lease: its deadline in milliseconds of CLOCK_BOOTTIME, then the directories of the sandbox's cgroups,
//! one on each line. Once the deadline has passed everything in them is killed and the file becomes <id>.ended. Until the
//! node has taken note and removed that, whatever still appears there is killed too: a boot may have been under way.
//!
//! DIRECTORY/.guard says which process is the guard and is locked by it; DIRECTORY/.node says which one is the node. The
//! guard ends when the directory is removed, or when there is neither a lease nor a node.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::process::{self, ExitCode};

/// How long it sleeps at most: its timer stands still while the machine is suspended, deadlines do not.
const LOOK_MS: u64 = 100;
/// How soon it kills again where something is left.
const AGAIN_MS: u64 = 2;
/// A lease that is larger was not written by a node.
const LEASE_BYTES: u64 = 64 * 1024;
const EVENT_BYTES: usize = 16 * 1024;
const EVENT_HEAD_BYTES: usize = 16;

const ENDED: &str = ".ended";

/// Deadlines by file name. Only a hint when to look: before anything is killed its file is read again.
type Deadlines = BTreeMap<String, u64>;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(directory), None) = (words.next(), words.next()) else {
        eprintln!("usage: sandpiper-guard DIRECTORY");
        return ExitCode::from(2);
    };
    match watch_over(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("sandpiper-guard: {}: {problem}", directory.display());
            ExitCode::FAILURE
        }
    }
}

fn watch_over(directory: &Path) -> io::Result<()> {
    let directory = &fs::canonicalize(directory)?;
    let post = File::options().write(true).create(true).truncate(false).open(directory.join(".guard"))?;
    match post.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    stand_apart();
    let changes = Changes::of(directory)?;
    let mut deadlines = read_all(directory)?;
    announce(&post)?;
    loop {
        let wait_ms = end_overdue(directory, &mut deadlines);
        if deadlines.keys().all(|name| name.ends_with(ENDED)) && !has_node(directory) {
            // A node that comes this very moment either sees that nobody is here any more, or is seen.
            post.set_len(0)?;
            if !has_node(directory) {
                clear_away(directory, &deadlines);
                return Ok(());
            }
            announce(&post)?;
        }
        match changes.wait(wait_ms)? {
            Change::Files(names) => names.into_iter().for_each(|name| note(directory, &mut deadlines, name)),
            Change::TooMany => deadlines = read_all(directory)?,
            Change::Removed => return Ok(()),
        }
    }
}

/// Nobody comes back to look at what has ended: a node that starts again finds its instances gone.
fn clear_away(directory: &Path, ended: &Deadlines) {
    for name in ended.keys().map(String::as_str).chain([".node", ".guard"]) {
        let _ = fs::remove_file(directory.join(name));
    }
    // Unless somebody has put something there meanwhile.
    let _ = fs::remove_dir(directory);
}

/// Neither a terminal, nor a careless signal, nor a lack of memory may end it, and it keeps no mount busy.
fn stand_apart() {
    // SAFETY: plain calls without memory; a process that leads a session already stays its leader.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let _ = std::env::set_current_dir("/");
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
}

fn announce(post: &File) -> io::Result<()> {
    let identity = identify(process::id()).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
    post.set_len(0)?;
    // One write at the start: whoever reads it meanwhile sees nothing or all of it.
    post.write_all_at(identity.as_bytes(), 0)
}

/// `pid start-ticks boot-id` of a process that runs; a process id alone is used again after a while.
fn identify(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may itself hold spaces and parentheses.
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ');
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let start_ticks = fields.nth(18)?;
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    (!has_ended).then(|| format!("{pid} {start_ticks} {}\n", boot_id.trim()))
}

fn has_node(directory: &Path) -> bool {
    let Ok(owner) = fs::read_to_string(directory.join(".node")) else { return false };
    let pid = owner.split(' ').next().and_then(|pid| pid.parse().ok());
    pid.and_then(identify).is_some_and(|identity| identity == owner)
}

fn read_all(directory: &Path) -> io::Result<Deadlines> {
    let mut deadlines = Deadlines::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string() {
            note(directory, &mut deadlines, name);
        }
    }
    Ok(deadlines)
}

fn note(directory: &Path, deadlines: &mut Deadlines, name: String) {
    match Lease::read(directory, &name) {
        Some(lease) => deadlines.insert(name, lease.deadline_ms),
        None => deadlines.remove(&name),
    };
}

/// Kills what is past its deadline; answers with when to look again.
fn end_overdue(directory: &Path, deadlines: &mut Deadlines) -> u64 {
    let now_ms = boottime_ms();
    let mut wait_ms = LOOK_MS;
    deadlines.retain(|name, deadline_ms| {
        if *deadline_ms <= now_ms {
            let Some(lease) = Lease::read(directory, name) else { return false };
            *deadline_ms = lease.deadline_ms;
            if lease.deadline_ms <= now_ms {
                if !lease.is_sound(name) {
                    return false;
                } else if !lease.end() {
                    wait_ms = AGAIN_MS;
                } else if !name.ends_with(ENDED) {
                    // It fails only if the node has removed it this very moment.
                    let _ = fs::rename(directory.join(name), directory.join(format!("{name}{ENDED}")));
                }
                return true;
            }
        }
        wait_ms = wait_ms.min(*deadline_ms - now_ms);
        true
    });
    wait_ms
}

struct Lease {
    deadline_ms: u64,
    cgroups: Vec<PathBuf>,
}

impl Lease {
    /// None for what is no lease.
    fn read(directory: &Path, name: &str) -> Option<Self> {
        if name.starts_with('.') {
            return None;
        }
        let mut text = String::new();
        File::open(directory.join(name)).ok()?.take(LEASE_BYTES).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        let written_ms = lines.next()?.parse().ok()?;
        let deadline_ms = if name.ends_with(ENDED) { 0 } else { written_ms };
        Some(Self { deadline_ms, cgroups: lines.map(PathBuf::from).collect() })
    }

    /// False for one that names anything but cgroups of its own sandbox: nobody else is killed.
    fn is_sound(&self, name: &str) -> bool {
        let id = name.strip_suffix(ENDED).unwrap_or(name);
        self.cgroups.iter().all(|path| is_cgroup_of(id, path))
    }

    /// Kills everything in it once; true when there was nothing.
    fn end(&self) -> bool {
        let mut was_empty = true;
        for cgroup in &self.cgroups {
            let processes = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
            if processes.is_empty() {
                continue;
            }
            was_empty = false;
            if kill_as_one(cgroup).is_err() {
                // 0 stands for a process of another namespace, and means a process group of ours to kill().
                let pids = processes.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1);
                // SAFETY: plain calls; a process that has ended meanwhile is an error that does not matter.
                pids.for_each(|pid: i32| unsafe { _ = libc::kill(pid, libc::SIGKILL) });
            }
        }
        was_empty
    }
}

/// Kernels before 5.14, and all cgroups of version 1, have no such file; it must not be made.
fn kill_as_one(cgroup: &Path) -> io::Result<()> {
    File::options().write(true).open(cgroup.join("cgroup.kill"))?.write_all(b"1")
}

/// One that is not there, not yet or not any more, may be named; a link must not lead to another.
fn is_cgroup_of(id: &str, path: &Path) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    // Nodes of one machine tell theirs apart by what follows.
    let (exact, prefix) = (format!("sandpiper-{id}"), format!("sandpiper-{id}-"));
    let is_name = |name: &OsStr| name == exact.as_str() || name.as_bytes().starts_with(prefix.as_bytes());
    let has_name = |path: &Path| path.file_name().is_some_and(is_name);
    let leads_there = match fs::canonicalize(path) {
        Ok(real) => has_name(&real) && is_on_cgroup_file_system(&real),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    path.is_absolute() && is_plain && has_name(path) && leads_there
}

/// Anywhere else a file named cgroup.procs could hold any numbers.
fn is_on_cgroup_file_system(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path is NUL-terminated, and the kernel fills the structure unless it reports an error.
    unsafe {
        libc::statfs(path.as_ptr(), found.as_mut_ptr()) == 0
            && [libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC].contains(&found.assume_init().f_type)
    }
}

fn boottime_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable; this clock exists on every kernel that has cgroups.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

enum Change {
    /// Names of files that came or went; perhaps none.
    Files(Vec<String>),
    /// The kernel dropped some.
    TooMany,
    /// The directory is not there any more.
    Removed,
}

/// What happens in the directory.
struct Changes(OwnedFd);

impl Changes {
    fn of(directory: &Path) -> io::Result<Self> {
        let path = CString::new(directory.as_os_str().as_bytes())?;
        let files = libc::IN_MOVED_TO | libc::IN_MOVED_FROM | libc::IN_DELETE;
        let itself = libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_ONLYDIR;
        // SAFETY: the new descriptor is ours alone, and the path is NUL-terminated.
        unsafe {
            let fd = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let changes = Self(OwnedFd::from_raw_fd(fd));
            if libc::inotify_add_watch(fd, path.as_ptr(), files | itself) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(changes)
        }
    }

    /// Waits for a change, but no longer than that.
    fn wait(&self, wait_ms: u64) -> io::Result<Change> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut buffer = [0u8; EVENT_BYTES];
        // SAFETY: both the structure and the buffer are writable for their lengths.
        let size = unsafe {
            libc::poll(&mut poll, 1, wait_ms as i32);
            libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        if size >= 0 {
            return Ok(parse(&buffer[..size as usize]));
        }
        match io::Error::last_os_error() {
            error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Change::Files(Vec::new()))
            }
            error => Err(error),
        }
    }
}

/// `struct inotify_event`: watch, mask, cookie, length of the name, and the name padded with NULs.
fn parse(mut bytes: &[u8]) -> Change {
    let mut names = Vec::new();
    while bytes.len() >= EVENT_HEAD_BYTES {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if word(4) & (libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_IGNORED | libc::IN_UNMOUNT) != 0 {
            return Change::Removed;
        }
        if word(4) & libc::IN_Q_OVERFLOW != 0 {
            return Change::TooMany;
        }
        let end = (EVENT_HEAD_BYTES + word(12) as usize).min(bytes.len());
        let name = bytes[EVENT_HEAD_BYTES..end].split(|byte| *byte == 0).next().unwrap_or_default();
        names.extend(String::from_utf8(name.to_vec()));
        bytes = &bytes[end..];
    }
    Change::Files(names)
}
