//! Connections to what listens inside the sandbox.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

/// How long to wait for a listener whose queue is full.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(10);

/// A port on loopback, wherever its program listens.
pub async fn tcp(port: u16) -> io::Result<OwnedFd> {
    let stream = match TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(stream) => stream,
        // The first failure is the one to report: a sandbox may have no IPv6 at all.
        Err(error) => TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await.map_err(|_| error)?,
    };
    // Small messages go at once: whoever is at the other end of the stream has collected them already.
    stream.set_nodelay(true)?;
    Ok(stream.into_std()?.into())
}

pub async fn unix(path: &Path) -> io::Result<OwnedFd> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => sleep(FULL_QUEUE_PAUSE).await,
            // The address holds about a hundred bytes; the library says so without an error number.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
            }
            connected => return Ok(connected?.into_std()?.into()),
        }
    }
}
