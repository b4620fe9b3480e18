//! Carries bytes between stdio and an agent, for hosts that can run a program beside the agent and cannot connect to it.

use crate::args::ChannelKind;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::exit;
use std::thread;
use std::time::Duration;

/// An agent that was started at the same moment listens a few milliseconds later.
const ATTEMPTS: u32 = 200;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(10);
const BUFFER_BYTES: usize = 64 * 1024;

/// Ends when either side does: the other one has nobody to speak to then.
pub fn run(channel: &ChannelKind) -> io::Result<()> {
    let ChannelKind::Abstract(name) = channel else {
        return Err(io::Error::other("a relay needs --channel unix:@name"));
    };
    let mut agent = connect(&SocketAddr::from_abstract_name(name)?)?;
    let mut to_agent = agent.try_clone()?;
    // As files, since the buffers of the standard library would hold lines back.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    thread::spawn(move || {
        let _ = carry(&mut input, &mut to_agent);
        exit(0);
    });
    carry(&mut agent, &mut output)
}

/// With a buffer of its own: `io::copy` would splice, and has been seen to leave the end of an answer in the socket.
fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
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
