//! Signals by name and number.

use crate::error::{AgentError, Result};

macro_rules! signals {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), libc::$name)),*] };
}

const NAMES: &[(&str, i32)] = signals![
    SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE,
    SIGALRM, SIGTERM, SIGSTKFLT, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGXCPU, SIGXFSZ,
    SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGPWR, SIGSYS,
];

const LAST_SIGNAL: i32 = 64;

/// "SIGTERM", "TERM" or "15".
pub fn parse(text: &str) -> Result<i32> {
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES.iter().find(|(name, _)| &name[3..] == bare).map(|(_, number)| *number);
    let number = named.or_else(|| text.parse().ok().filter(|number| (1..=LAST_SIGNAL).contains(number)));
    number.ok_or_else(|| {
        AgentError::invalid("unknown_signal", format!("unknown signal {text:?}"))
            .hint("give a name such as \"SIGTERM\" or \"TERM\", or a number from 1 to 64")
    })
}

/// A real-time signal has no name, so it gets its number.
pub fn name(number: i32) -> String {
    match NAMES.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => (*name).to_string(),
        None => format!("SIG{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_signal_by_name_short_name_and_number() {
        for text in ["SIGTERM", "TERM", "sigterm", "15"] {
            assert_eq!(parse(text).unwrap(), libc::SIGTERM, "{text}");
        }
        assert_eq!(name(parse("64").unwrap()), "SIG64");
        assert_eq!(name(libc::SIGKILL), "SIGKILL");
    }

    #[test]
    fn refuses_unknown_names_and_numbers() {
        for text in ["", "SIG", "SIGNOPE", "0", "65", "-9", "9x"] {
            assert_eq!(parse(text).unwrap_err().reason, "unknown_signal", "{text:?}");
        }
    }
}
