//! A path of a call, made absolute.

use super::dir::{Dir, c_string};
use crate::args::Args;
use crate::error::{AgentError, Result};
use crate::os::user;
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
    /// Relative paths start at the default user's home, or at the agent's working directory if there is no home.
    pub fn resolve(args: &Args, given: String) -> Result<Self> {
        if given.is_empty() || given.len() > MAX_PATH_BYTES || given.contains('\0') {
            let message = format!(
                "a path must have 1 to {MAX_PATH_BYTES} bytes and no NUL byte; this one has {} bytes",
                given.len()
            );
            return Err(AgentError::invalid("bad_path", message));
        }
        let absolute = if given.starts_with('/') { PathBuf::new() } else { starting_directory(args)? };
        let absolute = absolute.join(&given).components().collect();
        Ok(Self { given, absolute })
    }

    pub fn as_path(&self) -> &Path {
        &self.absolute
    }

    /// The parent directory, open, and the name of the path's last component.
    pub fn entry(&self, tried: &'static str) -> Result<(Dir, CString)> {
        let (Some(parent), Some(name)) = (self.absolute.parent(), self.absolute.file_name()) else {
            let message = format!("cannot {tried} {self}: the path must end in a name");
            return Err(AgentError::invalid("bad_path", message));
        };
        let failed = self.failed(tried);
        Ok((Dir::open(parent).map_err(&failed)?, c_string(name.as_bytes()).map_err(&failed)?))
    }

    /// Converts an error of the operating system into one that names the path as the caller wrote it.
    pub fn failed(&self, tried: &'static str) -> impl Fn(io::Error) -> AgentError + '_ {
        move |error| AgentError::io(tried, &self.given, &error)
    }
}

impl std::fmt::Display for SandboxPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.given)
    }
}

fn starting_directory(args: &Args) -> Result<PathBuf> {
    match user::default_user(args).home.filter(|home| home.is_dir()) {
        Some(home) => Ok(home),
        None => std::env::current_dir().map_err(|error| AgentError::io("find", "the working directory", &error)),
    }
}
