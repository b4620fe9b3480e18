//! Collects the exit status of every child: processes that the agent started, and orphans.

use super::table::ProcessTable;
use super::tree;
use crate::os::{check, descriptor, user};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::task::yield_now;

struct Signal {
    number: i32,
    /// A pid of this namespace; zero for a process outside of it.
    sender: u32,
}

/// `signals` is the signalfd of `startup`.
pub async fn run(processes: Rc<ProcessTable>, signals: OwnedFd) -> io::Result<()> {
    let signals = descriptor::watch(signals, Interest::READABLE)?;
    let is_init = std::process::id() == 1;
    let mut is_stopping = false;
    loop {
        let Ok(mut ready) = signals.readable().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Reaps before it reads the signal, which nearly always is SIGCHLD: callers wait for the exit.
        reap(&processes).await;
        let Ok(Ok(read)) = ready.try_io(|fd| read_signals(fd.as_raw_fd())) else { continue };
        ready.clear_ready();
        for Signal { number, sender } in read {
            match number {
                // Another child may have exited since.
                libc::SIGCHLD => reap(&processes).await,
                // Only the host, whose processes have no pid inside, can stop PID 1. Processes may finish for as long as
                // the host waits.
                _ if is_init => {
                    if sender == 0 {
                        is_stopping = true;
                        tree::terminate_everything();
                    }
                }
                // An agent that is not PID 1 must leave no processes behind.
                number => {
                    tree::kill_everything();
                    std::process::exit(128 + number);
                }
            }
        }
        if is_stopping && !tree::has_processes() {
            std::process::exit(0);
        }
        processes.prepared_pipes.refill();
        user::keep_tables();
    }
}

/// Reads all pending signals: the kernel merges signals of one kind, and the array has space for all kinds.
fn read_signals(fd: i32) -> io::Result<Vec<Signal>> {
    let mut infos: [MaybeUninit<libc::signalfd_siginfo>; 8] = [const { MaybeUninit::uninit() }; 8];
    // SAFETY: a signalfd writes whole records, as many as fit.
    let size = check(unsafe { libc::read(fd, infos.as_mut_ptr().cast(), size_of_val(&infos)) })?;
    let count = size as usize / size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel has filled that many records.
    let infos = infos[..count].iter().map(|info| unsafe { info.assume_init_ref() });
    Ok(infos.map(|info| Signal { number: info.ssi_signo as i32, sender: info.ssi_pid }).collect())
}

/// The kernel merges signals of one kind, so each SIGCHLD collects all exited children. The callers that wait for one get
/// their answer before the next is collected.
async fn reap(processes: &ProcessTable) {
    loop {
        let mut status = 0;
        // SAFETY: waitpid fills the status of a child of ours.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if pid <= 0 {
            return;
        }
        let output = processes.exited(pid, status);
        // One yield for the waiting calls, one for the task that writes their answers.
        yield_now().await;
        yield_now().await;
        if let Some(output) = output {
            output.release();
        }
    }
}
