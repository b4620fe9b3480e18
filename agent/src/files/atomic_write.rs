//! Writes a temporary file and then replaces the target: readers see the old contents or the new, never a part.

use super::destination::{Destination, follow_symlinks};
use super::mode::Mode;
use super::owner::Owner;
use super::sandbox_path::SandboxPath;
use super::stat::Kind;
use super::temp_entry::TempEntry;
use crate::args::Args;
use crate::error::{AgentError, Code, Result};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

const NEW_FILE_MODE: u32 = 0o644;

pub struct AtomicWrite {
    path: SandboxPath,
    destination: Destination,
    temp: TempEntry,
    file: File,
    mode: u32,
    owner: Owner,
    parents_owner: Owner,
    replaces: bool,
}

impl AtomicWrite {
    /// Dropping it before `finish` changes nothing.
    pub fn begin(args: &Args, path: SandboxPath, mode: Option<Mode>, owner: Option<&str>) -> Result<Self> {
        let parents_owner = Owner::choose(args, None)?;
        let named_owner = owner.map(|name| Owner::choose(args, Some(name))).transpose()?;
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
        // In the deepest existing directory: it has the same filesystem, and a cancel need not remove new parents.
        let temp = TempEntry::new(&destination.base).map_err(path.failed("write"))?;
        // Only the agent can read it until its owner and mode are set.
        let file = destination.base.create_file(temp.name(), 0o600).map_err(path.failed("write"))?;
        Ok(Self {
            path,
            destination,
            temp,
            file,
            mode: mode.map_or(old_mode, Mode::bits),
            owner: named_owner.unwrap_or(old_owner),
            parents_owner,
            replaces: replaced.is_some(),
        })
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(self.path.failed("write"))
    }

    /// Does not sync to disk: a sandbox's disk does not survive a crash of its host.
    pub fn finish(self) -> Result<()> {
        let Self { path, destination, temp, file, mode, owner, parents_owner, replaces } = self;
        let place = || {
            owner.apply(file.as_fd(), mode)?;
            let made = destination.make_parents(parents_owner)?;
            temp.place(made.as_ref().unwrap_or(&destination.base), &destination.name, replaces)
        };
        place().map_err(path.failed("write"))
    }
}

pub fn not_a_file(tried: &str, path: &SandboxPath) -> AgentError {
    let message = format!("cannot {tried} {path}: it is a device, a FIFO or a socket");
    AgentError::new(Code::FailedPrecondition, "not_a_file", message)
        .hint("use a process in the sandbox, or port.dial for a socket")
}
