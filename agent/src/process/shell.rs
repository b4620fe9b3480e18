//! Finds the shell of a sandbox.

use super::environment::Environment;
use super::program::is_executable;
use crate::error::{AgentError, Code, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The shells of accounts without a login.
const NO_LOGIN: &[&str] = &["nologin", "false"];

/// $SHELL if it can be executed, else bash, else sh.
pub fn find(environment: &Environment) -> Result<PathBuf> {
    let named = environment.shell();
    [named, Path::new("/bin/bash"), Path::new("/bin/sh")]
        .into_iter()
        .skip(usize::from(is_default(environment)))
        .find(|shell| is_usable(shell))
        .map(Path::to_path_buf)
        .ok_or_else(|| {
            let message = format!(
                "the sandbox has no shell: none of $SHELL ({}), /bin/bash and /bin/sh can be executed; name a program instead",
                named.display()
            );
            AgentError::new(Code::NotFound, "no_such_program", message)
        })
}

/// Most accounts have sh only because it is the default; bash is better there.
fn is_default(environment: &Environment) -> bool {
    !environment.names_shell() && environment.shell().file_name() == Some(OsStr::new("sh"))
}

fn is_usable(shell: &Path) -> bool {
    let is_no_login = NO_LOGIN.iter().any(|name| shell.file_name() == Some(OsStr::new(name)));
    shell.is_absolute() && !is_no_login && is_executable(shell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::user::User;
    use std::collections::BTreeMap;

    fn found(account: Option<&str>, named: Option<&str>) -> PathBuf {
        let shell = account.map(PathBuf::from);
        let user = User { name: "u".into(), uid: 1, gid: 1, groups: vec![], home: None, shell };
        let extra: BTreeMap<String, String> = named.map(|shell| ("SHELL".into(), shell.into())).into_iter().collect();
        find(&Environment::new(std::iter::empty(), &user, "p", false, &extra).unwrap()).unwrap()
    }

    #[test]
    fn is_the_one_that_the_environment_names() {
        assert_eq!(found(Some("/bin/bash"), Some("/bin/sh")), Path::new("/bin/sh"));
        assert_eq!(found(None, Some("/usr/bin/env")), Path::new("/usr/bin/env"));
    }

    #[test]
    fn is_that_of_the_account_unless_it_is_only_the_default() {
        assert_eq!(found(Some("/usr/bin/env"), None), Path::new("/usr/bin/env"));
        assert_eq!(found(Some("/bin/sh"), None), Path::new("/bin/bash"));
        assert_eq!(found(None, None), Path::new("/bin/bash"));
    }

    #[test]
    fn is_bash_if_the_named_one_cannot_be_used() {
        for named in ["", "sh", "/no/such/shell", "/etc/passwd", "/usr/bin", "/usr/sbin/nologin", "/bin/false"] {
            assert_eq!(found(None, Some(named)), Path::new("/bin/bash"), "{named}");
        }
    }
}
