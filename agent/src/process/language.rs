//! The supported languages and their interpreters.

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
        AgentError::invalid("unknown_language", format!("{language:?} {problem}; available: {present}"))
    })
}

/// The languages with an interpreter.
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

/// The usual suffix of a source file. Some interpreters depend on it.
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
    fn finds_a_language_by_name_and_alias() {
        let path = OsStr::new("/usr/local/bin:/usr/bin:/bin");
        assert_eq!(interpreter("sh", path).unwrap().name, "sh");
        assert!(present(path).contains(&"sh"));
        assert_eq!(file_suffix("js"), ".js");
    }

    #[test]
    fn refuses_unknown_and_missing_languages_and_lists_the_available_ones() {
        let unknown = interpreter("cobol", OsStr::new("/bin:/usr/bin")).err().unwrap();
        assert_eq!(unknown.reason, "unknown_language");
        assert!(unknown.message.contains("sh"), "{}", unknown.message);
        let missing = interpreter("python", OsStr::new("/nowhere")).err().unwrap();
        assert!(missing.message.contains("no interpreter"), "{}", missing.message);
    }
}
