//! A path as a call names it, made absolute.

use super::dir::{Dir, c_string};
use crate::agent::Agent;
use crate::error::{AgentError, Result};
use crate::user;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub const MAX_PATH_BYTES: usize = 4096;

#[derive(Debug)]
pub struct SandboxPath {
    given: String,
    absolute: PathBuf,
}

impl SandboxPath {
    /// Relative paths start at the default user's home, or where the agent runs when there is no such directory.
    pub fn resolve(agent: &Agent, given: String) -> Result<Self> {
        if given.is_empty() || given.len() > MAX_PATH_BYTES || given.contains('\0') {
            let message = format!("a path has 1 to {MAX_PATH_BYTES} bytes and no NUL; this one has {}", given.len());
            return Err(AgentError::invalid("bad_path", message));
        }
        let absolute = if given.starts_with('/') { PathBuf::new() } else { starting_directory(agent)? };
        let absolute = absolute.join(&given).components().collect();
        Ok(Self { given, absolute })
    }

    pub fn as_path(&self) -> &Path {
        &self.absolute
    }

    /// The open directory that holds the path's last component, and that component's name.
    pub fn entry(&self, tried: &'static str) -> Result<(Dir, CString)> {
        let (Some(parent), Some(name)) = (self.absolute.parent(), self.absolute.file_name()) else {
            let message = format!("cannot {tried} {self}: the path must end in a name");
            return Err(AgentError::invalid("bad_path", message));
        };
        let failed = self.failed(tried);
        Ok((Dir::open(parent).map_err(&failed)?, c_string(name.as_bytes()).map_err(&failed)?))
    }

    /// Turns the operating system's error into one that names the path as the caller wrote it.
    pub fn failed(&self, tried: &'static str) -> impl Fn(io::Error) -> AgentError + '_ {
        move |error| AgentError::io(tried, &self.given, &error)
    }
}

impl std::fmt::Display for SandboxPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.given)
    }
}

fn starting_directory(agent: &Agent) -> Result<PathBuf> {
    match user::default_user(&agent.args).home.filter(|home| home.is_dir()) {
        Some(home) => Ok(home),
        None => std::env::current_dir().map_err(|error| AgentError::io("find", "the working directory", &error)),
    }
}
