use super::net::no_such_flow;
use crate::calls::call::Call;
use crate::calls::window::Window;
use crate::error::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Params {
    flow: u64,
    #[serde(rename = "window")]
    _window: Window,
}

pub async fn run(mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    Err(no_such_flow(params.flow))
}
