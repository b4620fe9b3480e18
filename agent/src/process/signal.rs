//! Signals by name and number.

use crate::error::{AgentError, Result};

const NAMES: &[(&str, i32)] = &[
    ("SIGHUP", libc::SIGHUP),
    ("SIGINT", libc::SIGINT),
    ("SIGQUIT", libc::SIGQUIT),
    ("SIGILL", libc::SIGILL),
    ("SIGTRAP", libc::SIGTRAP),
    ("SIGABRT", libc::SIGABRT),
    ("SIGBUS", libc::SIGBUS),
    ("SIGFPE", libc::SIGFPE),
    ("SIGKILL", libc::SIGKILL),
    ("SIGUSR1", libc::SIGUSR1),
    ("SIGSEGV", libc::SIGSEGV),
    ("SIGUSR2", libc::SIGUSR2),
    ("SIGPIPE", libc::SIGPIPE),
    ("SIGALRM", libc::SIGALRM),
    ("SIGTERM", libc::SIGTERM),
    ("SIGSTKFLT", libc::SIGSTKFLT),
    ("SIGCHLD", libc::SIGCHLD),
    ("SIGCONT", libc::SIGCONT),
    ("SIGSTOP", libc::SIGSTOP),
    ("SIGTSTP", libc::SIGTSTP),
    ("SIGTTIN", libc::SIGTTIN),
    ("SIGTTOU", libc::SIGTTOU),
    ("SIGURG", libc::SIGURG),
    ("SIGXCPU", libc::SIGXCPU),
    ("SIGXFSZ", libc::SIGXFSZ),
    ("SIGVTALRM", libc::SIGVTALRM),
    ("SIGPROF", libc::SIGPROF),
    ("SIGWINCH", libc::SIGWINCH),
    ("SIGIO", libc::SIGIO),
    ("SIGPWR", libc::SIGPWR),
    ("SIGSYS", libc::SIGSYS),
];

const LAST_SIGNAL: i32 = 64;

/// "SIGTERM", "TERM" or "15".
pub fn parse(text: &str) -> Result<i32> {
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES.iter().find(|(name, _)| &name[3..] == bare).map(|(_, number)| *number);
    let number = named.or_else(|| text.parse().ok().filter(|number| (1..=LAST_SIGNAL).contains(number)));
    number.ok_or_else(|| {
        AgentError::invalid("unknown_signal", format!("there is no signal {text:?}"))
            .hint("give a name such as \"SIGTERM\" or \"TERM\", or a number from 1 to 64")
    })
}

/// Real-time signals have no names of their own and are told by number.
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
    fn a_signal_is_known_by_name_short_name_and_number() {
        for text in ["SIGTERM", "TERM", "sigterm", "15"] {
            assert_eq!(parse(text).unwrap(), libc::SIGTERM, "{text}");
        }
        assert_eq!(name(parse("64").unwrap()), "SIG64");
        assert_eq!(name(libc::SIGKILL), "SIGKILL");
    }

    #[test]
    fn what_is_no_signal_is_refused() {
        for text in ["", "SIG", "SIGNOPE", "0", "65", "-9", "9x"] {
            assert_eq!(parse(text).unwrap_err().reason, "unknown_signal", "{text:?}");
        }
    }
}
