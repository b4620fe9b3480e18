//! `port.list` and `port.watch`: the TCP ports on which something in the sandbox listens.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::json_lines::JsonLines;
use crate::calls::window::Window;
use crate::error::Result;
use crate::net::listen;
use crate::net::ports::{self, Port};
use crate::net::socket_table::Row;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Programs that start often open their ports soon.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);
/// While processes run.
const BUSY_INTERVAL: Duration = Duration::from_secs(2);
/// While none runs that a caller has started; others may.
const IDLE_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
struct WatchParams {
    window: Window,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Event<'a> {
    Ready,
    Opened(&'a Port),
    Closed(&'a Port),
}

pub fn list(agent: &Agent) -> Result<Value> {
    Ok(json!({ "ports": ports::describe(listening(agent).values()) }))
}

/// Only a cancel ends it.
pub async fn watch(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: WatchParams = call.params()?;
    let mut lines = JsonLines::new(&call, params.window);
    let mut open = BTreeMap::new();
    report(&mut lines, &mut open, listening(agent)).await?;
    lines.push(&Event::Ready).await?;
    lines.flush().await?;
    let mut interval = SHORTEST_INTERVAL;
    loop {
        let longest = if agent.processes.is_idle() { IDLE_INTERVAL } else { BUSY_INTERVAL };
        if timeout(interval.min(longest), agent.processes.any_started.notified()).await.is_ok() {
            tokio::time::sleep(SHORTEST_INTERVAL).await;
            interval = SHORTEST_INTERVAL;
        }
        let changes = report(&mut lines, &mut open, listening(agent)).await?;
        lines.flush().await?;
        interval = if changes { SHORTEST_INTERVAL } else { (interval * 3 / 2).min(longest) };
    }
}

fn listening(agent: &Agent) -> BTreeMap<u16, Row> {
    ports::listening(agent.network.is_redirected.get().then_some(listen::TCP.into()))
}

/// Writes the differences between the known ports and those that are open now.
async fn report(
    lines: &mut JsonLines<'_>,
    known: &mut BTreeMap<u16, (u64, Port)>,
    now: BTreeMap<u16, Row>,
) -> Result<bool> {
    let is_same = |port: &u16, inode: u64| now.get(port).is_some_and(|row| row.inode == inode);
    let closed: Vec<u16> =
        known.iter().filter(|(port, (inode, _))| !is_same(port, *inode)).map(|(port, _)| *port).collect();
    for port in &closed {
        if let Some((_, port)) = known.remove(port) {
            lines.push(&Event::Closed(&port)).await?;
        }
    }
    let opened: Vec<Row> = now.into_iter().filter(|(port, _)| !known.contains_key(port)).map(|(_, row)| row).collect();
    for (port, row) in ports::describe(opened.iter()).into_iter().zip(&opened) {
        lines.push(&Event::Opened(&port)).await?;
        known.insert(port.port, (row.inode, port));
    }
    Ok(!closed.is_empty() || !opened.is_empty())
}
