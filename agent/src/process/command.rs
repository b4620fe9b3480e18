//! The ways to name what to run, each resolved to a program and its arguments.

use super::environment::Environment;
use super::{language, program, shell};
use crate::error::{AgentError, Code, Result};
use std::path::{Path, PathBuf};

pub enum Command {
    Argv(Vec<String>),
    /// Run by /bin/sh.
    Line(String),
    /// The sandbox's shell itself.
    Shell,
    /// A source file, run by the interpreter of its language.
    Code {
        language: String,
        path: PathBuf,
    },
}

pub struct Resolved {
    pub program: PathBuf,
    pub argv: Vec<String>,
}

impl Command {
    pub fn resolve(self, environment: &Environment, cwd: &Path) -> Result<Resolved> {
        match self {
            Command::Argv(argv) => {
                let name = argv.first().filter(|name| !name.is_empty() && !name.contains('\0'));
                let name = name.ok_or_else(|| AgentError::invalid("bad_argv", "argv must begin with a program"))?;
                let program = find(name, environment, cwd)?;
                Ok(Resolved { program, argv })
            }
            Command::Line(text) => {
                Ok(Resolved { program: "/bin/sh".into(), argv: vec!["/bin/sh".into(), "-c".into(), text] })
            }
            Command::Shell => {
                let program = shell::find(environment)?;
                let argv = vec![program.to_string_lossy().into_owned()];
                Ok(Resolved { program, argv })
            }
            Command::Code { language, path } => {
                let interpreter = language::interpreter(&language, environment.search_path())?;
                let argv = vec![interpreter.name.to_string(), path.to_string_lossy().into_owned()];
                Ok(Resolved { program: interpreter.path, argv })
            }
        }
    }
}

/// A name with a slash is a path, which the kernel resolves from the process's working directory.
fn find(name: &str, environment: &Environment, cwd: &Path) -> Result<PathBuf> {
    if name.contains('/') {
        return Ok(name.into());
    }
    program::find(name, environment.search_path(), cwd).ok_or_else(|| {
        let path = environment.search_path().to_string_lossy();
        let message = format!("cannot run {name:?}: program not found in PATH ({path})");
        AgentError::new(Code::NotFound, "no_such_program", message)
    })
}
