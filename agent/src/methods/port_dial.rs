//! `port.dial`: connects to a port or socket in the sandbox and copies both directions on the call's stream.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::try_join::try_join;
use crate::calls::window::Window;
use crate::error::{AgentError, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::os::{descriptor, read_into};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

/// How long to wait for a listener whose backlog is full.
const FULL_BACKLOG_DELAY: Duration = Duration::from_millis(10);
/// What a caller may send before the socket has taken it.
const WINDOW_BYTES: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;

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
    Tunnel { call: &call, socket: socket.map_err(failed)? }.run().await.map_err(failed)
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

struct Tunnel<'a> {
    call: &'a Call,
    socket: AsyncFd<OwnedFd>,
}

impl Tunnel<'_> {
    /// Runs until both directions have ended. Each can end alone: if the peer refuses bytes but still sends, the caller
    /// gets all of them before the error.
    async fn run(&self) -> io::Result<Value> {
        let (sent, received) = (Cell::new(0), Cell::new(0));
        let refusal = RefCell::new(Ok(()));
        let to_socket = async {
            *refusal.borrow_mut() = self.send(&sent).await;
            Ok(())
        };
        try_join(to_socket, self.receive(&received)).await?;
        refusal.into_inner()?;
        Ok(json!({ "sent": sent.get(), "received": received.get() }))
    }

    async fn send(&self, sent: &Cell<u64>) -> io::Result<()> {
        self.call.grant(WINDOW_BYTES).await;
        while let Some(bytes) = self.call.receive().await {
            self.write_all(&bytes).await?;
            sent.set(sent.get() + bytes.len() as u64);
            self.call.grant(bytes.len()).await;
        }
        // Fails when the peer has already closed, which is fine.
        // SAFETY: plain call on an open descriptor.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_WR) };
        Ok(())
    }

    async fn receive(&self, received: &Cell<u64>) -> io::Result<()> {
        loop {
            let credit = self.call.take_credit(READ_BYTES).await;
            let bytes = self.read(credit).await?;
            if bytes.is_empty() {
                self.call.send_end().await;
                return Ok(());
            }
            self.call.stream.add_credit((credit - bytes.len()) as u64);
            received.set(received.get() + bytes.len() as u64);
            self.call.send_data("", bytes).await;
        }
    }

    async fn read(&self, most: usize) -> io::Result<Vec<u8>> {
        loop {
            let mut ready = self.socket.readable().await?;
            // Allocated only when bytes are available, so that an idle tunnel holds no memory.
            let mut bytes: Vec<u8> = Vec::with_capacity(most + 1);
            if let Ok(outcome) = ready.try_io(|fd| read_into(fd.as_raw_fd(), &mut bytes, most)) {
                let size = outcome?;
                if size < most / 2 {
                    bytes.shrink_to(size + 1);
                }
                return Ok(bytes);
            }
        }
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[descriptor::write_some(&self.socket, bytes).await?..];
        }
        Ok(())
    }
}
