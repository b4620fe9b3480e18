use crate::agent::Agent;
use crate::call::Call;
use crate::error::Result;
use crate::process::launch::{self, SpawnParams};
use serde_json::{Value, json};
use std::rc::Rc;

pub fn run(agent: &Rc<Agent>, mut call: Call) -> Result<Value> {
    let process = launch::launch(agent, call.params::<SpawnParams>()?)?;
    Ok(json!({ "process": process.id, "pid": process.pid }))
}
