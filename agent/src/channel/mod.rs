//! How callers reach the agent. Every kind of channel ends in `session`, which serves one caller.

mod listen;
mod newest_connection;
pub mod relay;
mod serial;
mod session;

use crate::agent::Agent;
use crate::args::ChannelKind;
use crate::os::{check, own};
use crate::wire::byte_stream::{Reader, Writer};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

/// Serves callers until the channel can bring no more of them.
pub async fn serve(agent: Rc<Agent>) -> io::Result<()> {
    // On every kind of channel: a process without input inherits descriptor 0, which must be /dev/null.
    let (input, output) = (take(libc::STDIN_FILENO)?, take(libc::STDOUT_FILENO)?);
    match agent.args.channel.clone() {
        ChannelKind::Stdio => session::serve(agent, Reader::new(input)?, Writer::new(output)?).await,
        ChannelKind::Serial(path) => serial::serve(agent, &path).await,
        ChannelKind::Unix(path) => listen::serve(agent, listen::unix(&path)?, |_| true).await,
        ChannelKind::Abstract(name) => listen::serve(agent, listen::abstract_unix(&name)?, listen::is_own_user).await,
        ChannelKind::Vsock(port) => newest_connection::serve(agent, listen::vsock(port)?).await,
    }
}

/// Moves a descriptor out of the reach of children and leaves /dev/null in its place.
fn take(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: duplicates an open descriptor; the copy has no other owner.
    let copy = unsafe { own(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3)) }?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open; dup2 replaces fd atomically.
    check(unsafe { libc::dup2(null.as_raw_fd(), fd) })?;
    Ok(copy)
}
