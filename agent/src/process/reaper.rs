//! Collects every child that ends, those the agent started and the orphans that came to it.

use super::tree;
use crate::agent::Agent;
use crate::descriptor;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;

/// `signals` is a signalfd; see `startup`.
pub async fn run(agent: Rc<Agent>, signals: OwnedFd) -> io::Result<()> {
    let signals = descriptor::watch(signals, Interest::READABLE)?;
    loop {
        let Ok(mut ready) = signals.readable().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        match ready.try_io(|fd| read_signal(fd.as_raw_fd())) {
            Ok(Ok(libc::SIGCHLD)) => reap(&agent),
            // Told to end while not PID 1: nothing that was started may stay behind.
            Ok(Ok(signal)) => {
                tree::kill_everything();
                std::process::exit(128 + signal);
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

fn read_signal(fd: i32) -> io::Result<i32> {
    // SAFETY: a signalfd gives whole records, and the buffer holds one.
    unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        if libc::read(fd, (&raw mut info).cast(), size) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(info.ssi_signo as i32)
    }
}

/// Signals of one kind are merged, so every child that has ended is collected at each.
fn reap(agent: &Agent) {
    loop {
        let mut status = 0;
        // SAFETY: waitpid fills the status of a child of ours.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if pid <= 0 {
            return;
        }
        agent.processes.exited(pid, status);
    }
}
