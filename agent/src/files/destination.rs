//! The place of a new file or directory, whose parents may be missing.

use super::dir::{Dir, c_string, stat_path};
use super::owner::Owner;
use super::stat::{Kind, Stat};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kernel's own limit.
const MAX_SYMLINKS: usize = 40;
const PARENT_MODE: u32 = 0o755;

#[derive(Debug)]
pub struct Destination {
    /// The deepest existing parent.
    pub base: Dir,
    /// The missing parents below `base`, outermost first.
    missing: Vec<CString>,
    pub name: CString,
}

impl Destination {
    /// Opens the deepest existing parent and creates nothing.
    pub fn find(path: &Path) -> io::Result<Self> {
        let (Some(mut parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        };
        let mut missing = Vec::new();
        let base = loop {
            match Dir::open(parent) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                    let (Some(above), Some(name)) = (parent.parent(), parent.file_name()) else { return Err(error) };
                    missing.push(c_string(name.as_bytes())?);
                    parent = above;
                }
                opened => break opened?,
            }
        };
        missing.reverse();
        Ok(Self { base, missing, name: c_string(name.as_bytes())? })
    }

    pub fn lacks_parents(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Creates the missing parents for `owner` and returns the deepest; None when none was missing.
    pub fn make_parents(&self, owner: Owner) -> io::Result<Option<Dir>> {
        let mut deepest = None;
        for name in &self.missing {
            let (dir, _) = make_dir(deepest.as_ref().unwrap_or(&self.base), name, PARENT_MODE, owner)?;
            deepest = Some(dir);
        }
        Ok(deepest)
    }
}

/// Opens a directory and creates it if necessary; true when it did.
pub fn make_dir(parent: &Dir, name: &CStr, mode: u32, owner: Owner) -> io::Result<(Dir, bool)> {
    match parent.make_dir(name, mode) {
        Ok(()) => {
            let dir = parent.child(name)?;
            owner.apply(dir.as_fd(), mode)?;
            Ok((dir, true))
        }
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok((parent.child(name)?, false)),
        Err(error) => Err(error),
    }
}

/// Follows the symlinks at a path's end, also to a missing target.
pub fn follow_symlinks(path: &Path) -> io::Result<(PathBuf, Option<Stat>)> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_SYMLINKS {
        match stat_path(&path, false) {
            Ok(stat) if stat.kind() == Kind::Symlink => {
                let target = std::fs::read_link(&path)?;
                path = path.parent().map(|parent| parent.join(&target)).unwrap_or(target);
            }
            Ok(stat) => return Ok((path, Some(stat))),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok((path, None)),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}
