//! `net.accept`: connects a flow to the call's stream.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::tunnel::Tunnel;
use crate::calls::window::Window;
use crate::error::{AgentError, Code, Result};
use crate::net::socket::reset_on_close;
use serde::Deserialize;
use serde_json::Value;
use std::os::fd::AsRawFd;

#[derive(Deserialize)]
struct Params {
    flow: u64,
    window: Window,
}

/// Unless both directions end in good order, the connection is reset.
pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let Params { flow, window } = call.params()?;
    let Some(_accepted) = agent.network.count_accepted() else {
        return Err(AgentError::new(Code::ResourceExhausted, "too_many_calls", "too many flows are open"));
    };
    let Some(socket) = agent.network.subscription().and_then(|subscription| subscription.take_flow(flow)) else {
        return Err(AgentError::new(Code::NotFound, "no_such_flow", format!("flow {flow} does not wait")));
    };
    let failed = |error| AgentError::io("serve", &format!("flow {flow}"), &error);
    call.stream.add_credit(window.bytes());
    let result = Tunnel { call: &call, socket: &socket }.run().await.map_err(failed)?;
    reset_on_close(socket.as_raw_fd(), false).map_err(failed)?;
    Ok(result)
}
