//! Collects every child that ends, those the agent started and the orphans that came to it.

use super::tree;
use crate::agent::Agent;
use crate::descriptor;
use crate::user;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::task::yield_now;

struct Signal {
    number: i32,
    /// As a pid of this namespace; zero for a process outside of it.
    sender: u32,
}

/// `signals` is a signalfd; see `startup`.
pub async fn run(agent: Rc<Agent>, signals: OwnedFd) -> io::Result<()> {
    let signals = descriptor::watch(signals, Interest::READABLE)?;
    let is_init = std::process::id() == 1;
    let mut is_ending = false;
    loop {
        let Ok(mut ready) = signals.readable().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // It is nearly always a child, and whoever waits for it comes before the signal's details.
        reap(&agent).await;
        let Ok(Ok(read)) = ready.try_io(|fd| read_signals(fd.as_raw_fd())) else { continue };
        ready.clear_ready();
        for Signal { number, sender } in read {
            match number {
                // Another may have ended between the two looks.
                libc::SIGCHLD => reap(&agent).await,
                // PID 1 is told to end by its host, whose processes have no pid inside: everybody gets a chance to finish,
                // for as long as the host waits. Nobody inside can end it.
                _ if is_init => {
                    if sender == 0 {
                        is_ending = true;
                        tree::end_everything();
                    }
                }
                // Told to end while not PID 1: nothing that was started may stay behind.
                number => {
                    tree::kill_everything();
                    std::process::exit(128 + number);
                }
            }
        }
        if is_ending && !tree::has_processes() {
            std::process::exit(0);
        }
        agent.processes.spare_pipes.make();
        user::keep_tables();
    }
}

/// All that are pending: signals of one kind are merged, and the room is for more kinds than the agent reads.
fn read_signals(fd: i32) -> io::Result<Vec<Signal>> {
    let mut infos: [MaybeUninit<libc::signalfd_siginfo>; 8] = [const { MaybeUninit::uninit() }; 8];
    // SAFETY: a signalfd writes whole records, as many as fit.
    let size = unsafe { libc::read(fd, infos.as_mut_ptr().cast(), size_of_val(&infos)) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    let count = size as usize / size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel has filled that many records.
    let infos = infos[..count].iter().map(|info| unsafe { info.assume_init_ref() });
    Ok(infos.map(|info| Signal { number: info.ssi_signo as i32, sender: info.ssi_pid }).collect())
}

/// Signals of one kind are merged, so every child that has ended is collected at each. Whoever waits for one is
/// answered before the next is looked for.
async fn reap(agent: &Agent) {
    loop {
        let mut status = 0;
        // SAFETY: waitpid fills the status of a child of ours.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if pid <= 0 {
            return;
        }
        let output = agent.processes.exited(pid, status);
        // Once for those who wait, and once for the task that writes their answers.
        yield_now().await;
        yield_now().await;
        if let Some(output) = output {
            output.release();
        }
    }
}
