//! The lease guard: kills the instances of a node that does not renew its leases.
//!
//! usage: sandpiper-guard DIRECTORY
//!
//! DIRECTORY/<id> is a lease: its deadline, and the targets to kill after it (see `lease.rs`). When all targets are dead,
//! the guard renames the file to <id>.ended. It also kills what appears later, of a boot in progress, until the node
//! removes that file.
//!
//! DIRECTORY/.guard names the guard's process, which locks it. DIRECTORY/.node names the node's process. The guard exits
//! when the directory is removed, or when there is neither a lease nor a node.

mod cgroup;
mod engine;
mod lease;
mod slow_kills;

use lease::{ENDED, Lease, Target};
use sandpiper_agent::os::boottime;
use sandpiper_agent::os::inotify::{self, RawEvent};
use slow_kills::SlowKills;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{self, ExitCode};

/// The longest sleep. Timers stop while the host is suspended, but deadlines do not.
const MAX_SLEEP_MS: u64 = 100;
/// The delay before the next kill while processes are left.
const KILL_INTERVAL_MS: u64 = 2;
/// The delay before the next check of an attempt in another thread.
const ATTEMPT_INTERVAL_MS: u64 = 10;
/// How long after a deadline it checks that often.
const IMPATIENT_MS: u64 = 5000;
/// The format of leases, for a node of another version.
const FORMAT: u32 = 2;

/// Deadlines by file name. They say only when to check: the guard reads a file again before it kills.
type Deadlines = BTreeMap<String, u64>;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(directory), None) = (words.next(), words.next()) else {
        eprintln!("usage: sandpiper-guard DIRECTORY");
        return ExitCode::from(2);
    };
    match guard(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("sandpiper-guard: {}: {problem}", directory.display());
            ExitCode::FAILURE
        }
    }
}

fn guard(directory: &Path) -> io::Result<()> {
    let directory = &fs::canonicalize(directory)?;
    let lock = File::options().write(true).create(true).truncate(false).open(directory.join(".guard"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    detach();
    let changes = Changes::of(directory)?;
    let mut deadlines = read_all(directory)?;
    let mut slow = SlowKills::default();
    announce(&lock)?;
    loop {
        let wait_ms = kill_expired(directory, &mut deadlines, &mut slow);
        if deadlines.keys().all(|name| name.ends_with(ENDED)) && !has_node(directory) {
            // A node that starts now either sees that the guard has gone, or the second check sees the node.
            lock.set_len(0)?;
            if !has_node(directory) {
                remove_files(directory, &deadlines);
                return Ok(());
            }
            announce(&lock)?;
        }
        match changes.wait(wait_ms)? {
            Change::Files(names) => names.into_iter().for_each(|name| note(directory, &mut deadlines, name)),
            Change::TooMany => deadlines = read_all(directory)?,
            Change::Removed => return Ok(()),
        }
    }
}

/// A node that starts later needs none of these files: it finds that its instances are gone.
fn remove_files(directory: &Path, ended: &Deadlines) {
    for name in ended.keys().map(String::as_str).chain([".node", ".guard"]) {
        let _ = fs::remove_file(directory.join(name));
    }
    // Fails if another program has added a file.
    let _ = fs::remove_dir(directory);
}

/// Survives the end of its terminal, common signals and a lack of memory, and keeps no mount busy.
fn detach() {
    // setsid fails for a process that already leads a session.
    // SAFETY: plain calls without memory.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let _ = std::env::set_current_dir("/");
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
}

fn announce(lock: &File) -> io::Result<()> {
    let identity = identify(process::id()).ok_or_else(|| io::Error::other("cannot find this process in /proc"))?;
    lock.set_len(0)?;
    // One write: a reader sees nothing or all of it.
    lock.write_all_at(format!("{identity} {FORMAT}\n").as_bytes(), 0)
}

/// `pid start-ticks boot-id` of a running process. A pid alone may be reused.
fn identify(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses and may itself contain spaces and parentheses.
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ');
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let start_ticks = fields.nth(18)?;
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    (!has_ended).then(|| format!("{pid} {start_ticks} {}", boot_id.trim()))
}

fn has_node(directory: &Path) -> bool {
    let Ok(owner) = fs::read_to_string(directory.join(".node")) else { return false };
    let pid = owner.split(' ').next().and_then(|pid| pid.parse().ok());
    pid.and_then(identify).is_some_and(|identity| identity == owner.trim_end())
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

/// Kills the instances of expired leases. Returns the time until the next check.
fn kill_expired(directory: &Path, deadlines: &mut Deadlines, slow: &mut SlowKills) -> u64 {
    let now_ms = now_ms();
    let mut wait_ms = MAX_SLEEP_MS;
    let mut expired = BTreeSet::new();
    deadlines.retain(|name, deadline_ms| {
        if *deadline_ms <= now_ms {
            let Some(lease) = Lease::read(directory, name) else { return false };
            *deadline_ms = lease.deadline_ms;
            if lease.deadline_ms <= now_ms {
                let id = lease::id_of(name);
                if !lease.targets.iter().all(|target| target.belongs_to(id)) {
                    return false;
                }
                expired.insert(id.to_string());
                // Every target, even if one is left: a hung engine must not delay the others.
                let left: Vec<_> =
                    lease.targets.iter().filter(|target| !kill(id, target, lease.grace_ms, slow)).collect();
                if left.iter().any(|target| matches!(target, Target::Cgroup(_))) {
                    wait_ms = KILL_INTERVAL_MS;
                } else if !left.is_empty() {
                    // An engine that does not answer for long may never do so.
                    let is_new = now_ms - lease.deadline_ms < IMPATIENT_MS;
                    wait_ms = wait_ms.min(if is_new { ATTEMPT_INTERVAL_MS } else { MAX_SLEEP_MS });
                } else if !name.ends_with(ENDED) {
                    // Fails only if the node has just removed the file.
                    let _ = fs::rename(directory.join(name), directory.join(format!("{name}{ENDED}")));
                }
                return true;
            }
        }
        wait_ms = wait_ms.min(*deadline_ms - now_ms);
        true
    });
    // A renewed lease starts anew when it expires again.
    slow.retain(|id| expired.contains(id));
    wait_ms
}

/// Kills once; true when the target is dead. Never blocks.
fn kill(id: &str, target: &Target, grace_ms: u64, slow: &mut SlowKills) -> bool {
    let now_ms = now_ms();
    match target {
        Target::Cgroup(path) => cgroup::kill(path),
        Target::Containers { machine: Some(machine), .. } => {
            // A machine that has ended runs no container.
            let waited_ms = slow.waited_ms(id, target, now_ms);
            machine.cgroups.iter().all(|path| !cgroup::has_processes(path))
                || slow.kill(id, target, now_ms)
                || (waited_ms >= grace_ms / 2 && cgroup::kill_all(&machine.cgroups))
        }
        _ => slow.kill(id, target, now_ms),
    }
}

fn now_ms() -> u64 {
    boottime().map_or(0, |time| time.as_millis() as u64)
}

enum Change {
    /// The names of files that were added or removed; may be empty.
    Files(Vec<String>),
    /// The kernel dropped events.
    TooMany,
    /// The directory is gone.
    Removed,
}

impl Change {
    fn of(events: Vec<RawEvent>) -> Self {
        if events
            .iter()
            .any(|event| event.is(libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_IGNORED | libc::IN_UNMOUNT))
        {
            return Change::Removed;
        }
        if events.iter().any(|event| event.is(libc::IN_Q_OVERFLOW)) {
            return Change::TooMany;
        }
        Change::Files(events.into_iter().filter_map(|event| String::from_utf8(event.name).ok()).collect())
    }
}

/// Reports changes in the directory.
struct Changes(OwnedFd);

impl Changes {
    fn of(directory: &Path) -> io::Result<Self> {
        let path = CString::new(directory.as_os_str().as_bytes())?;
        let files = libc::IN_MOVED_TO | libc::IN_MOVED_FROM | libc::IN_DELETE;
        let itself = libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_ONLYDIR;
        let fd = inotify::open()?;
        inotify::add(&fd, &path, files | itself)?;
        Ok(Self(fd))
    }

    /// Waits for a change, at most `wait_ms`.
    fn wait(&self, wait_ms: u64) -> io::Result<Change> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one writable structure.
        unsafe { libc::poll(&mut poll, 1, wait_ms as i32) };
        Ok(Change::of(inotify::read(&self.0)?.unwrap_or_default()))
    }
}
