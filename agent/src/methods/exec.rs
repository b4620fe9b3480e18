use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::process::collect::{self, CollectParams};
use crate::process::launch::SpawnParams;
use serde::Deserialize;
use serde_json::Value;
use std::rc::Rc;

#[derive(Deserialize)]
struct Params {
    cmd: String,
    #[serde(flatten)]
    how: CollectParams,
}

pub async fn run(agent: &Rc<Agent>, mut call: Call) -> Result<Value> {
    let Params { cmd, how } = call.params()?;
    collect::run(agent, SpawnParams { command: Some(cmd), ..Default::default() }, how).await
}
