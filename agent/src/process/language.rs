//! The languages that code can be in, and the programs that run them.

use super::program;
use crate::error::{AgentError, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

struct Language {
    name: &'static str,
    aliases: &'static [&'static str],
    /// In order of preference.
    interpreters: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language { name: "python", aliases: &["python3"], interpreters: &["python3", "python"] },
    Language { name: "javascript", aliases: &["node", "js"], interpreters: &["node"] },
    Language { name: "bash", aliases: &[], interpreters: &["bash"] },
    Language { name: "sh", aliases: &[], interpreters: &["sh"] },
];

pub struct Interpreter {
    pub name: &'static str,
    pub path: PathBuf,
}

/// The program that runs `language`, found in the directories of `search_path`.
pub fn interpreter(language: &str, search_path: &OsStr) -> Result<Interpreter> {
    let known = LANGUAGES.iter().find(|entry| entry.name == language || entry.aliases.contains(&language));
    known.and_then(|entry| entry.find(search_path)).ok_or_else(|| {
        let present = present(search_path).join(", ");
        let problem = if known.is_some() { "has no interpreter in this sandbox" } else { "is not a known language" };
        AgentError::invalid("unknown_language", format!("{language:?} {problem}; those present: {present}"))
    })
}

/// The languages that have an interpreter.
pub fn present(search_path: &OsStr) -> Vec<&'static str> {
    LANGUAGES.iter().filter(|entry| entry.find(search_path).is_some()).map(|entry| entry.name).collect()
}

impl Language {
    fn find(&self, search_path: &OsStr) -> Option<Interpreter> {
        self.interpreters.iter().find_map(|name| {
            let path = program::find(name, search_path, Path::new("/"))?;
            Some(Interpreter { name, path })
        })
    }
}

/// The suffix that a source file of this language usually has; some interpreters choose by it.
pub fn file_suffix(language: &str) -> &'static str {
    match LANGUAGES.iter().find(|entry| entry.name == language || entry.aliases.contains(&language)) {
        Some(Language { name: "python", .. }) => ".py",
        Some(Language { name: "javascript", .. }) => ".js",
        Some(_) => ".sh",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_found_by_name_and_alias() {
        let path = OsStr::new("/usr/local/bin:/usr/bin:/bin");
        assert_eq!(interpreter("sh", path).unwrap().name, "sh");
        assert!(present(path).contains(&"sh"));
        assert_eq!(file_suffix("js"), ".js");
    }

    #[test]
    fn a_language_that_is_unknown_or_not_installed_is_refused_with_the_list_of_those_present() {
        let unknown = interpreter("cobol", OsStr::new("/bin:/usr/bin")).err().unwrap();
        assert_eq!(unknown.reason, "unknown_language");
        assert!(unknown.message.contains("sh"), "{}", unknown.message);
        let missing = interpreter("python", OsStr::new("/nowhere")).err().unwrap();
        assert!(missing.message.contains("no interpreter"), "{}", missing.message);
    }
}
