//! The JSON-RPC request or notification in a frame.

use crate::error::AgentError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CallId {
    Number(u64),
    Text(String),
}

impl CallId {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "null".into())
    }
}

#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub params: Map<String, Value>,
}

/// A request has an id, a notification has none. An error carries the id to answer, if the message had a valid one.
pub fn parse(mut message: Map<String, Value>) -> Result<(Option<CallId>, Request), (Option<CallId>, AgentError)> {
    let refuse = |id: Option<CallId>, what: &str| {
        Err((id, AgentError::malformed(-32600, "not_a_request", format!("this is not a JSON-RPC 2.0 request: {what}"))))
    };
    let id = match message.remove("id") {
        None => None,
        Some(value) => match serde_json::from_value::<CallId>(value) {
            Ok(CallId::Text(text)) if text.is_empty() || text.len() > 128 => {
                return refuse(None, "an id has 1 to 128 characters");
            }
            Ok(id) => Some(id),
            Err(_) => return refuse(None, "the id must be a non-negative integer or a string"),
        },
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(id, "\"jsonrpc\" must be \"2.0\"");
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return refuse(id, "\"method\" must be a string");
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let error = AgentError::invalid("bad_params", format!("the params of {method} must be an object"));
            return Err((id, error));
        }
    };
    Ok((id, Request { method, params }))
}
