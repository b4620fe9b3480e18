//! The byte stream to the host: whatever it is, it ends up as two non-blocking descriptors.

mod listen;
mod newest;
mod serial;
mod stdio;
mod vsock;

use crate::agent::Agent;
use crate::args::ChannelKind;
use crate::descriptor;
use crate::session;
use std::fs::File;
use std::io::{self, IoSlice, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const REOPEN_AFTER: Duration = Duration::from_millis(50);

/// Serves callers for as long as the channel can bring any.
pub async fn serve(agent: Rc<Agent>) -> io::Result<()> {
    // Whatever the channel is, descriptor 0 becomes /dev/null, which processes without input inherit.
    let (input, output) = stdio::take()?;
    match agent.args.channel.clone() {
        ChannelKind::Stdio => session::serve(agent, Reader::new(input)?, Writer::new(output)?).await,
        ChannelKind::Serial(path) => serve_serial(agent, &path).await,
        ChannelKind::Unix(path) => listen::serve(agent, listen::unix(&path)?).await,
        ChannelKind::Abstract(name) => listen::serve_own_user(agent, listen::by_name(&name)?).await,
        ChannelKind::Vsock(port) => newest::serve(agent, vsock::listen(port)?).await,
    }
}

/// A port ends or fails whenever the host lets go of its side, and is good again when the host is back.
async fn serve_serial(agent: Rc<Agent>, path: &Path) -> io::Result<()> {
    let mut port = serial::open(path)?;
    loop {
        serial::until_host(&port).await?;
        let outcome = serve_port(Rc::clone(&agent), &port).await;
        if outcome.is_ok() && !port.is_terminal() {
            // To close it would throw away what a host that is back already has sent.
            continue;
        }
        port = loop {
            tokio::time::sleep(REOPEN_AFTER).await;
            if let Ok(port) = serial::open(path) {
                break port;
            }
        };
    }
}

async fn serve_port(agent: Rc<Agent>, port: &File) -> io::Result<()> {
    let (input, output) = (port.try_clone()?.into(), port.try_clone()?.into());
    session::serve(agent, Reader::of_terminal(input)?, Writer::new(output)?).await
}

pub struct Reader {
    fd: AsyncFd<OwnedFd>,
    /// Pipes and sockets give all they have, so a read that left room in the buffer need not be followed by one that
    /// finds nothing. Terminals give a line at a time.
    gives_all: bool,
}

impl Reader {
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: descriptor::watch(fd, Interest::READABLE)?, gives_all: true })
    }

    pub fn of_terminal(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { gives_all: false, ..Self::new(fd)? })
    }

    /// Appends to `first` what it has place for and at most `most` further bytes to `rest`. Gives the number of all;
    /// zero at the end of the stream.
    pub async fn read(&self, first: Place<'_>, rest: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let Place { bytes: first, room } = first;
        first.reserve_exact(room);
        rest.reserve_exact(most);
        loop {
            let mut ready = self.fd.readable().await?;
            match ready.try_io(|fd| append(fd.as_raw_fd(), (first, room), (rest, most))) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => {
                    if self.gives_all && matches!(done, Ok(size) if 0 < size && size < room + most) {
                        ready.clear_ready();
                    }
                    return done;
                }
                Err(_would_block) => {}
            }
        }
    }
}

/// Where bytes are to go, and how many at most.
pub struct Place<'a> {
    pub bytes: &'a mut Vec<u8>,
    pub room: usize,
}

fn append(
    fd: RawFd,
    (first, first_most): (&mut Vec<u8>, usize),
    (rest, rest_most): (&mut Vec<u8>, usize),
) -> io::Result<usize> {
    let slices = [slice(first, first_most), slice(rest, rest_most)];
    // SAFETY: both slices lie in the spare room of vectors that outlive the call.
    let size = unsafe { libc::readv(fd, slices.as_ptr(), slices.len() as i32) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    let size = size as usize;
    // SAFETY: the kernel has just filled that many bytes, the first slice before the second.
    unsafe {
        first.set_len(first.len() + size.min(first_most));
        rest.set_len(rest.len() + size.saturating_sub(first_most));
    }
    Ok(size)
}

fn slice(bytes: &mut Vec<u8>, most: usize) -> libc::iovec {
    let room = bytes.spare_capacity_mut();
    libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: most.min(room.len()) }
}

/// Waits for room only when there is none. A writer that the event loop always watched would wake the agent up every time
/// the host has read something.
pub struct Writer(OwnedFd);

impl Writer {
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        descriptor::set_nonblocking(&fd)?;
        Ok(Self(fd))
    }

    pub async fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            // SAFETY: IoSlice has the layout of iovec, and the slices outlive the call.
            let size = unsafe { libc::writev(self.0.as_raw_fd(), slices.as_ptr().cast(), slices.len() as i32) };
            if size >= 0 {
                return Ok(size as usize);
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => self.room().await?,
                _ => return Err(error),
            }
        }
    }

    async fn room(&self) -> io::Result<()> {
        let watched = descriptor::watch_borrowed(self.0.as_fd(), Interest::WRITABLE)?;
        watched.writable().await?.retain_ready();
        Ok(())
    }
}
