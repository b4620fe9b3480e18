//! A file written aside and put in place at once: readers see the old contents or the new, never a part.

use super::destination::{Destination, follow_symlinks};
use super::mode::Mode;
use super::owner::Owner;
use super::sandbox_path::SandboxPath;
use super::stat::Kind;
use super::temp_file::TempFile;
use crate::agent::Agent;
use crate::error::{AgentError, Code, Result};
use std::io::{self, Write};
use std::os::fd::AsFd;

const NEW_FILE_MODE: u32 = 0o644;

pub struct AtomicWrite {
    path: SandboxPath,
    destination: Destination,
    temp: TempFile,
    mode: u32,
    owner: Owner,
    parents_owner: Owner,
    replaces: bool,
}

impl AtomicWrite {
    /// Dropping it before `finish` leaves everything as it was.
    pub fn begin(agent: &Agent, path: SandboxPath, mode: Option<Mode>, owner: Option<&str>) -> Result<Self> {
        let parents_owner = Owner::choose(agent, None)?;
        let named_owner = owner.map(|name| Owner::choose(agent, Some(name))).transpose()?;
        let (real_path, replaced) = follow_symlinks(path.as_path()).map_err(path.failed("write"))?;
        let (old_mode, old_owner) = match replaced {
            None => (NEW_FILE_MODE, parents_owner),
            Some(stat) if stat.kind() == Kind::File => (stat.mode(), Owner::of(&stat)),
            Some(stat) if stat.kind() == Kind::Directory => {
                return Err(path.failed("write")(io::Error::from_raw_os_error(libc::EISDIR)));
            }
            Some(_) => return Err(not_a_file("write", &path)),
        };
        let destination = Destination::find(&real_path).map_err(path.failed("write"))?;
        // In the deepest directory that exists: the same file system, and no new parents to take back after a cancel.
        let aside = destination.base.try_clone().map_err(path.failed("write"))?;
        let temp = TempFile::create(aside).map_err(path.failed("write"))?;
        Ok(Self {
            path,
            destination,
            temp,
            mode: mode.map_or(old_mode, Mode::bits),
            owner: named_owner.unwrap_or(old_owner),
            parents_owner,
            replaces: replaced.is_some(),
        })
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.temp.file.write_all(bytes).map_err(self.path.failed("write"))
    }

    /// Not synced to disk: a sandbox's disk does not outlive a crash of its host, so waiting for it would buy nothing.
    pub fn finish(self) -> Result<()> {
        let Self { path, destination, temp, mode, owner, parents_owner, replaces } = self;
        let place = || {
            owner.apply(temp.file.as_fd(), mode)?;
            let made = destination.make_parents(parents_owner)?;
            temp.place(made.as_ref().unwrap_or(&destination.base), &destination.name, replaces)
        };
        place().map_err(path.failed("write"))
    }
}

pub fn not_a_file(tried: &str, path: &SandboxPath) -> AgentError {
    let message = format!("cannot {tried} {path}: it is a device, a FIFO or a socket");
    AgentError::new(Code::FailedPrecondition, "not_a_file", message)
        .hint("use a process in the sandbox to talk to it, or port.dial for a socket")
}
