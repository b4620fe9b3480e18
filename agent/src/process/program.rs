//! Finds a program in the directories of PATH.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// `name` has no slash. Relative directories of `search_path` start at `cwd`, as they do in a shell.
pub fn find(name: &str, search_path: &OsStr, cwd: &Path) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    search_path
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|directory| cwd.join(OsStr::from_bytes(directory)).join(name))
        .find(|candidate| is_executable(candidate))
}

pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_directory_that_has_the_program() {
        let found = find("sh", OsStr::new("/nowhere:/bin:/usr/bin"), Path::new("/"));
        assert_eq!(found, Some("/bin/sh".into()));
    }

    #[test]
    fn resolves_a_relative_directory_from_the_working_directory() {
        assert_eq!(find("sh", OsStr::new("bin"), Path::new("/usr")), Some("/usr/bin/sh".into()));
    }

    #[test]
    fn ignores_directories_and_files_that_are_not_executable() {
        assert_eq!(find("bin", OsStr::new("/usr"), Path::new("/")), None);
        assert_eq!(find("passwd", OsStr::new("/etc"), Path::new("/")), None);
        assert_eq!(find("", OsStr::new("/bin"), Path::new("/")), None);
    }
}
