use crate::agent::Agent;
use crate::call::Call;
use crate::descriptor;
use crate::error::{AgentError, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::tunnel::{Tunnel, connect};
use crate::window::Window;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::Interest;

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
        (Some(port), None) => (format!("port {port}"), connect::tcp(port).await),
        (None, Some(path)) => {
            let path = SandboxPath::resolve(agent, path)?;
            (path.to_string(), connect::unix(path.as_path()).await)
        }
        _ => return Err(AgentError::invalid("bad_params", "port.dial takes a port or a path, exactly one of them")),
    };
    let failed = |error| AgentError::io("dial", &address, &error);
    let socket = descriptor::watch(connected.map_err(failed)?, Interest::READABLE | Interest::WRITABLE);
    call.stream.add_credit(params.window.bytes());
    let carried = Tunnel { call: &call, socket: socket.map_err(failed)? }.carry().await.map_err(failed)?;
    Ok(json!({ "sent": carried.sent, "received": carried.received }))
}
