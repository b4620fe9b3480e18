use crate::calls::call::Call;
use crate::calls::json_lines::JsonLines;
use crate::calls::window::Window;
use crate::error::Result;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    window: Window,
}

pub async fn run(mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let mut lines = JsonLines::new(&call, params.window);
    lines.push(&json!({ "kind": "ready", "redirected": false })).await?;
    lines.flush().await?;
    std::future::pending().await
}
