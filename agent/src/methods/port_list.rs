use crate::error::Result;
use serde_json::{Value, json};

pub fn run() -> Result<Value> {
    Ok(json!({ "ports": [] }))
}
