//! `port.dial`: connects to a port or socket in the sandbox and copies both directions on the call's stream.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::tunnel::Tunnel;
use crate::calls::window::Window;
use crate::error::{AgentError, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::os::descriptor;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

/// How long to wait for a listener whose backlog is full.
const FULL_BACKLOG_DELAY: Duration = Duration::from_millis(10);

#[derive(Deserialize)]
struct Params {
    port: Option<u16>,
    path: Option<String>,
    window: Window,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let (address, connected) = match (params.port, params.path) {
        (Some(0), None) => return Err(AgentError::invalid("bad_params", "port must be 1 to 65535, not 0")),
        (Some(port), None) => (format!("port {port}"), connect_tcp(port).await),
        (None, Some(path)) => {
            let path = SandboxPath::resolve(&agent.args, path)?;
            (path.to_string(), connect_unix(path.as_path()).await)
        }
        _ => return Err(AgentError::invalid("bad_params", "port.dial takes exactly one of port and path")),
    };
    let failed = |error| AgentError::io("dial", &address, &error);
    let socket = descriptor::watch(connected.map_err(failed)?, Interest::READABLE | Interest::WRITABLE);
    call.stream.add_credit(params.window.bytes());
    Tunnel { call: &call, socket: &socket.map_err(failed)? }.run().await.map_err(failed)
}

/// Connects to a port on loopback, IPv4 or IPv6.
async fn connect_tcp(port: u16) -> io::Result<OwnedFd> {
    let stream = match TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(stream) => stream,
        // Reports the first failure: a sandbox may have no IPv6.
        Err(error) => TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await.map_err(|_| error)?,
    };
    // The caller has already batched small messages.
    stream.set_nodelay(true)?;
    Ok(stream.into_std()?.into())
}

async fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => sleep(FULL_BACKLOG_DELAY).await,
            // The library reports a path over about 100 bytes without an error number.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
            }
            connected => return Ok(connected?.into_std()?.into()),
        }
    }
}
