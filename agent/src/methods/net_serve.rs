//! `net.serve`: announces flows and queries until a newer call takes over.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::json_lines::JsonLines;
use crate::calls::window::Window;
use crate::error::Result;
use crate::net::datagrams;
use crate::net::subscription::{Line, Subscription};
use serde::Deserialize;
use serde_json::{Value, json};
use std::future::{Future, poll_fn};
use std::pin::pin;

#[derive(Deserialize)]
struct Params {
    window: Window,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let subscribed = agent.network.subscribe();
    let mut lines = JsonLines::new(&call, params.window);
    lines.push(&Line::Ready { redirected: agent.network.is_redirected.get() }).await?;
    let mut announcing = pin!(announce(&subscribed.subscription, &mut lines));
    let mut counting = pin!(datagrams::watch(&subscribed.subscription));
    poll_fn(|context| {
        if agent.network.is_redirected.get() && counting.as_mut().poll(context).is_ready() {
            unreachable!("it never ends");
        }
        announcing.as_mut().poll(context)
    })
    .await?;
    Ok(json!({}))
}

async fn announce(subscription: &Subscription, lines: &mut JsonLines<'_>) -> Result<()> {
    lines.flush().await?;
    while let Some(batch) = subscription.next_lines().await {
        for line in &batch {
            lines.push(line).await?;
        }
        lines.flush().await?;
    }
    Ok(())
}
