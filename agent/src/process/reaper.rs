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

/// `signals` is a signalfd; see `startup`.
pub async fn run(agent: Rc<Agent>, signals: OwnedFd) -> io::Result<()> {
    let signals = descriptor::watch(signals, Interest::READABLE)?;
    loop {
        let Ok(mut ready) = signals.readable().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // It is nearly always a child, and whoever waits for it comes before the signal's details.
        reap(&agent).await;
        let Ok(Ok(read)) = ready.try_io(|fd| read_signals(fd.as_raw_fd())) else { continue };
        ready.clear_ready();
        for signal in read {
            match signal {
                // Another may have ended between the two looks.
                libc::SIGCHLD => reap(&agent).await,
                // Told to end while not PID 1: nothing that was started may stay behind.
                signal => {
                    tree::kill_everything();
                    std::process::exit(128 + signal);
                }
            }
        }
        agent.processes.spare_pipes.make();
        user::keep_tables();
    }
}

/// All that are pending: signals of one kind are merged, and the room is for more kinds than the agent reads.
fn read_signals(fd: i32) -> io::Result<Vec<i32>> {
    let mut infos: [MaybeUninit<libc::signalfd_siginfo>; 8] = [const { MaybeUninit::uninit() }; 8];
    // SAFETY: a signalfd writes whole records, as many as fit.
    let size = unsafe { libc::read(fd, infos.as_mut_ptr().cast(), size_of_val(&infos)) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    let count = size as usize / size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel has filled that many records.
    Ok(infos[..count].iter().map(|info| unsafe { info.assume_init_ref() }.ssi_signo as i32).collect())
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
