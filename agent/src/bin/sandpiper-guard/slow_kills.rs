use crate::lease::Target;
use crate::{cgroup, engine};
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

/// The delay before a failed attempt is repeated.
const RETRY_MS: u64 = 200;
/// How often a dead target is checked again, because a boot in progress may still start it.
const RECHECK_MS: u64 = 500;
/// A command costs more than a request.
const COMMAND_RECHECK_MS: u64 = 5000;
const KILL_ROUNDS: usize = 100;
const KILL_INTERVAL: Duration = Duration::from_millis(5);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
const COMMAND_POLL: Duration = Duration::from_millis(20);
/// A kill needs little, and many can run at once.
const STACK_BYTES: usize = 128 * 1024;

/// Kills that may block: each runs in its own thread, one at a time for each target.
#[derive(Default)]
pub struct SlowKills(Vec<Kill>);

struct Kill {
    id: String,
    target: Target,
    since_ms: u64,
    attempt: Option<Receiver<bool>>,
    next_ms: u64,
    is_dead: bool,
}

impl SlowKills {
    /// Starts an attempt when one is due; true once an attempt has found nothing left to kill.
    pub fn kill(&mut self, id: &str, target: &Target, now_ms: u64) -> bool {
        let kill = self.find(id, target, now_ms);
        if let Some(attempt) = &kill.attempt {
            match attempt.try_recv() {
                Err(TryRecvError::Empty) => return kill.is_dead,
                result => kill.finish(result == Ok(true), now_ms),
            }
        }
        if kill.next_ms <= now_ms {
            kill.attempt = start(id, target);
        }
        kill.is_dead
    }

    /// The time since the first attempt.
    pub fn waited_ms(&mut self, id: &str, target: &Target, now_ms: u64) -> u64 {
        now_ms - self.find(id, target, now_ms).since_ms
    }

    /// Forgets all other sandboxes. Their attempts end by themselves.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|kill| is_kept(&kill.id));
    }

    fn find(&mut self, id: &str, target: &Target, now_ms: u64) -> &mut Kill {
        let known = self.0.iter().position(|kill| kill.id == id && kill.target == *target);
        let index = known.unwrap_or_else(|| {
            let (id, target) = (id.to_string(), target.clone());
            self.0.push(Kill { id, target, since_ms: now_ms, attempt: None, next_ms: 0, is_dead: false });
            self.0.len() - 1
        });
        &mut self.0[index]
    }
}

impl Kill {
    fn finish(&mut self, is_dead: bool, now_ms: u64) {
        self.attempt = None;
        self.is_dead = is_dead;
        let delay_ms = match self.target {
            Target::Command(_) if is_dead => COMMAND_RECHECK_MS,
            _ if is_dead => RECHECK_MS,
            _ => RETRY_MS,
        };
        self.next_ms = now_ms + delay_ms;
    }
}

/// None if the host has no thread left; the next check tries again.
fn start(id: &str, target: &Target) -> Option<Receiver<bool>> {
    let (sender, receiver) = mpsc::channel();
    let (id, target) = (id.to_string(), target.clone());
    let work = move || {
        // The receiver is gone if the lease was removed meanwhile.
        let _ = sender.send(attempt(&id, &target));
    };
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).is_ok().then_some(receiver)
}

/// True when nothing is left.
fn attempt(id: &str, target: &Target) -> bool {
    match target {
        Target::Containers { engine, home, machine } => {
            // Without its engine a container of this host does not start, and its cgroups are targets of their own. The
            // engine of a machine may run although the node does not forward to it.
            until_none(|| engine::kill(engine, id, home)) || (machine.is_none() && !engine::is_running(engine))
        }
        Target::Container(id) => until_none(|| Ok(cgroup::kill_container(id))),
        Target::Command(words) => run(words),
        Target::Cgroup(_) => true,
    }
}

/// Kills again while something is left: an engine may list a container for a moment after it was killed.
fn until_none(mut kill: impl FnMut() -> io::Result<bool>) -> bool {
    for _ in 0..KILL_ROUNDS {
        match kill() {
            Ok(true) => return true,
            Ok(false) => thread::sleep(KILL_INTERVAL),
            Err(_) => return false,
        }
    }
    false
}

fn run(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(|child| has_succeeded(child, Instant::now() + COMMAND_TIMEOUT))
}

/// Ends a child that takes too long.
fn has_succeeded(mut child: Child, until: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < until => thread::sleep(COMMAND_POLL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
