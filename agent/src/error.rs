//! The error of every call: a code from a fixed list, a reason, a message, and a hint for the caller.

use serde::Serialize;
use serde_json::{Value, json};

/// The codes of `packages/protocol/src/errors/error-codes.ts` that an agent uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    InvalidArgument,
    PermissionDenied,
    NotFound,
    AlreadyExists,
    FailedPrecondition,
    ResourceExhausted,
    Canceled,
    Unimplemented,
    Unavailable,
    Internal,
}

#[derive(Debug, Clone)]
pub struct AgentError {
    pub code: Code,
    pub reason: &'static str,
    pub message: String,
    pub hint: Option<String>,
    rpc_code: i32,
}

pub type Result<T> = std::result::Result<T, AgentError>;

impl AgentError {
    pub fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        let rpc_code = match code {
            Code::InvalidArgument => -32602,
            Code::Unimplemented => -32601,
            _ => -32000,
        };
        Self { code, reason, message: message.into(), hint: None, rpc_code }
    }

    pub fn invalid(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, reason, message)
    }

    /// Input that is not a request.
    pub fn malformed(rpc_code: i32, reason: &'static str, message: impl Into<String>) -> Self {
        Self { rpc_code, ..Self::invalid(reason, message) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names what was tried on which path. The code depends on what the caller can do about it.
    pub fn io(tried: &str, path: &str, error: &std::io::Error) -> Self {
        let (code, reason) = match error.raw_os_error() {
            Some(libc::ENOENT) => (Code::NotFound, "no_such_file"),
            Some(libc::EEXIST) => (Code::AlreadyExists, "file_exists"),
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => (Code::PermissionDenied, "not_permitted"),
            Some(libc::ENOSPC | libc::EDQUOT) => (Code::ResourceExhausted, "disk_full"),
            Some(libc::EMFILE | libc::ENFILE) => (Code::ResourceExhausted, "too_many_open_files"),
            Some(libc::EAGAIN) => (Code::ResourceExhausted, "process_limit"),
            Some(libc::ENOMEM) => (Code::ResourceExhausted, "not_enough_memory"),
            Some(libc::ENOTDIR) => (Code::FailedPrecondition, "not_a_directory"),
            Some(libc::EISDIR) => (Code::FailedPrecondition, "is_a_directory"),
            Some(libc::ENOTEMPTY) => (Code::FailedPrecondition, "directory_not_empty"),
            Some(libc::EBUSY | libc::ETXTBSY) => (Code::FailedPrecondition, "busy"),
            Some(libc::ESTALE) => (Code::FailedPrecondition, "changed_meanwhile"),
            Some(libc::ECONNRESET | libc::EPIPE) => (Code::Unavailable, "connection_reset"),
            Some(libc::ECONNREFUSED) => (Code::Unavailable, "connection_refused"),
            Some(libc::EINVAL | libc::ENAMETOOLONG | libc::ELOOP) => (Code::InvalidArgument, "bad_path"),
            _ => (Code::Internal, "io_error"),
        };
        Self::new(code, reason, format!("cannot {tried} {path}: {error}"))
    }

    pub fn to_json(&self) -> Value {
        let mut data = json!({ "code": self.code, "reason": self.reason });
        if let Some(hint) = &self.hint {
            data["hint"] = json!(hint);
        }
        json!({ "code": self.rpc_code, "message": self.message, "data": data })
    }
}
