//! A file or directory under a temporary name. Dropping it before it has its final name removes it with its contents.

use super::dir::{Dir, c_string};
use super::remove_tree::remove_tree;
use crate::os::random_id;
use std::ffi::{CStr, CString};
use std::io;
use tokio::task::spawn_local;

const PREFIX: &str = ".sandpiper-";
const RANDOM_DIGITS: usize = 16;

pub struct TempEntry {
    /// None once the entry has its final name.
    dir: Option<Dir>,
    name: CString,
}

impl TempEntry {
    /// Only chooses the name; the caller creates the entry.
    pub fn new(dir: &Dir) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", &random_id()[..RANDOM_DIGITS]);
        Ok(Self { dir: Some(dir.try_clone()?), name: c_string(name.as_bytes())? })
    }

    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Gives the entry its final name and replaces the entry that has it. A new file is linked where possible, because a
    /// watch then sees a creation.
    pub fn place(self, to_dir: &Dir, to: &CStr, replaces: bool) -> io::Result<()> {
        if !replaces && self.link(to_dir, to) { Ok(()) } else { self.rename(|dir, name| dir.rename(name, to_dir, to)) }
    }

    /// Like `place`, but fails when the final name is taken.
    pub fn place_new(self, to_dir: &Dir, to: &CStr) -> io::Result<()> {
        if self.link(to_dir, to) { Ok(()) } else { self.rename(|dir, name| dir.rename_to_new(name, to_dir, to)) }
    }

    fn link(&self, to_dir: &Dir, to: &CStr) -> bool {
        self.dir.as_ref().is_some_and(|dir| dir.link(&self.name, to_dir, to).is_ok())
    }

    fn rename(mut self, rename: impl FnOnce(&Dir, &CStr) -> io::Result<()>) -> io::Result<()> {
        if let Some(dir) = &self.dir {
            rename(dir, &self.name)?;
        }
        self.dir = None;
        Ok(())
    }
}

impl Drop for TempEntry {
    fn drop(&mut self) {
        let Some(dir) = self.dir.take() else { return };
        let removed = dir.remove_file(&self.name);
        if removed.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT)) {
            // A directory tree of any size, so other calls run while the agent removes it.
            let name = self.name.clone();
            spawn_local(async move { remove_tree(&dir, &name).await });
        }
    }
}

/// Whether a name is temporary. A watch does not report such entries.
pub fn is_temp_name(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == RANDOM_DIGITS && rest.iter().all(u8::is_ascii_hexdigit))
}
