//! Copies bytes between stdio and an agent, for a host that can run a program beside the agent but cannot connect to it.

use crate::args::ChannelKind;
use crate::os::capability;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::exit;
use std::thread;
use std::time::Duration;

/// An agent that starts at the same time listens a few milliseconds later.
const ATTEMPTS: u32 = 200;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(10);
const BUFFER_BYTES: usize = 64 * 1024;

/// Ends when either side ends.
pub fn run(channel: &ChannelKind) -> io::Result<()> {
    let ChannelKind::Abstract(name) = channel else {
        return Err(io::Error::other("--relay needs --channel unix:@NAME"));
    };
    // An engine starts it with all rights of the container, of which the agent has given some up.
    capability::drop_network_administration()?;
    let mut agent = connect(&SocketAddr::from_abstract_name(name)?)?;
    let mut to_agent = agent.try_clone()?;
    // As files: the standard library would buffer lines.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    thread::spawn(move || {
        let _ = copy(&mut input, &mut to_agent);
        exit(0);
    });
    copy(&mut agent, &mut output)
}

/// Not `io::copy`: it splices, and sometimes leaves the end of an answer in the socket.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            size => to.write_all(&buffer[..size])?,
        }
    }
}

fn connect(address: &SocketAddr) -> io::Result<UnixStream> {
    let mut attempt = 1;
    loop {
        match UnixStream::connect_addr(address) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && attempt < ATTEMPTS => {
                attempt += 1;
                thread::sleep(ATTEMPT_INTERVAL);
            }
            outcome => return outcome,
        }
    }
}
