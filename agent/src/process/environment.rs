//! The environment of a new process.

use crate::error::{AgentError, Result};
use crate::os::user::User;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Holds the id of the process, so that `tree` finds descendants that have left their parent and session.
pub const PROCESS_ID_VARIABLE: &str = "SANDPIPER_PROCESS";

/// Variables that describe the agent itself and not the sandbox.
const OWN: &[&str] = &["HOME", "USER", "LOGNAME", "TERM", "PWD", "OLDPWD", "SHLVL", "_"];

pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// The caller or the image set $SHELL, rather than the user's account.
    names_shell: bool,
}

impl Environment {
    /// `own` is the environment of the agent, which for a container is that of its image.
    pub fn new(
        own: impl Iterator<Item = (OsString, OsString)>,
        user: &User,
        process: &str,
        has_terminal: bool,
        extra: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let mut variables = BTreeMap::new();
        let mut names_shell = extra.contains_key("SHELL");
        let account_shell = user.shell.as_ref().map_or_else(|| "/bin/sh".into(), |shell| shell.clone().into());
        let mut set = |name: &str, value: OsString| variables.insert(OsString::from(name), value);
        set("PATH", SEARCH_PATH.into());
        set("LANG", "C.UTF-8".into());
        set("SHELL", account_shell);
        for (name, value) in own {
            names_shell |= name == "SHELL";
            if let Some(name) = name.to_str().filter(|name| !name.starts_with("SANDPIPER_") && !OWN.contains(name)) {
                set(name, value);
            }
        }
        set("HOME", user.home.as_ref().map_or_else(|| "/".into(), |home| home.clone().into()));
        set("USER", user.name.clone().into());
        set("LOGNAME", user.name.clone().into());
        if has_terminal {
            set("TERM", "xterm-256color".into());
        }
        for (name, value) in extra {
            check(name, value)?;
            set(name, value.into());
        }
        set(PROCESS_ID_VARIABLE, process.into());
        Ok(Self { variables, names_shell })
    }

    pub fn search_path(&self) -> &OsStr {
        self.variables.get(OsStr::new("PATH")).map_or(OsStr::new(""), OsString::as_os_str)
    }

    pub fn shell(&self) -> &Path {
        Path::new(self.variables.get(OsStr::new("SHELL")).map_or(OsStr::new(""), OsString::as_os_str))
    }

    pub fn names_shell(&self) -> bool {
        self.names_shell
    }

    /// In the form that execve takes.
    pub fn into_strings(self) -> Vec<CString> {
        let join = |(name, value): (OsString, OsString)| {
            let mut text = name.into_vec();
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            // `check` refuses a NUL byte, and the agent's own environment cannot contain one.
            CString::new(text).unwrap_or_default()
        };
        self.variables.into_iter().map(join).collect()
    }
}

/// The search path of a call that sets none.
pub fn default_search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| SEARCH_PATH.into())
}

fn check(name: &str, value: &str) -> Result<()> {
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        let message = format!(
            "cannot set variable {name:?}: a name cannot be empty or contain \"=\", and NUL bytes are not allowed"
        );
        return Err(AgentError::invalid("bad_environment", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> User {
        User { name: "u".into(), uid: 1, gid: 1, groups: vec![], home: Some("/home/u".into()), shell: None }
    }

    #[test]
    fn lets_the_caller_override_all_variables_but_the_process_id() {
        let extra = [("HOME", "/x"), (PROCESS_ID_VARIABLE, "other")].map(|(name, value)| (name.into(), value.into()));
        let strings = Environment::new(std::iter::empty(), &user(), "p1", false, &extra.into()).unwrap().into_strings();
        let has = |text: &str| strings.iter().any(|entry| entry.to_bytes() == text.as_bytes());
        assert!(has("HOME=/x") && has("USER=u") && has("SHELL=/bin/sh") && has("SANDPIPER_PROCESS=p1"));
        assert!(!strings.iter().any(|entry| entry.to_bytes().starts_with(b"TERM=")));
    }

    #[test]
    fn sets_a_terminal_type_that_the_caller_can_override() {
        let strings =
            Environment::new(std::iter::empty(), &user(), "p1", true, &BTreeMap::new()).unwrap().into_strings();
        assert!(strings.iter().any(|entry| entry.to_bytes() == b"TERM=xterm-256color"));
        let dumb = [("TERM".to_string(), "dumb".to_string())].into();
        let strings = Environment::new(std::iter::empty(), &user(), "p1", true, &dumb).unwrap().into_strings();
        assert!(strings.iter().any(|entry| entry.to_bytes() == b"TERM=dumb"));
    }

    #[test]
    fn refuses_names_and_values_that_an_environment_cannot_hold() {
        for (name, value) in [("", "x"), ("a=b", "x"), ("a\0", "x"), ("a", "x\0")] {
            let extra = [(name.to_string(), value.to_string())].into();
            assert_eq!(
                Environment::new(std::iter::empty(), &user(), "p", false, &extra).err().unwrap().reason,
                "bad_environment"
            );
        }
    }
}
