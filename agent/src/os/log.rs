//! Messages for the operator, on standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Never fails: a full disk or a closed standard error must not end PID 1.
pub fn warn(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "sandpiper-agent: {message}");
}

/// Logs the error of a step whose failure is not fatal.
pub fn attempt<T>(what: impl Display, outcome: io::Result<T>) -> Option<T> {
    outcome.inspect_err(|error| warn(format_args!("cannot {what}: {error}"))).ok()
}
