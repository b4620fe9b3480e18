//! Messages for whoever looks after the agent, on its standard error.

use std::fmt::Display;
use std::io::Write;

/// Never fails: a full disk or a closed descriptor behind standard error must not end PID 1.
pub fn warn(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "sandpiper-agent: {message}");
}
