//! A file or directory under a temporary name, removed with all its contents when it is dropped before it got its real
//! one.

use super::dir::Dir;
use super::removal::remove_tree;
use super::temp_file::random_name;
use std::ffi::{CStr, CString};
use std::io;
use tokio::task::spawn_local;

pub struct TempTree {
    /// None once it is in place.
    dir: Option<Dir>,
    name: CString,
}

impl TempTree {
    /// Only chooses the name; what is made under it is the caller's affair.
    pub fn new(dir: Dir) -> io::Result<Self> {
        Ok(Self { dir: Some(dir), name: random_name()? })
    }

    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// A new file is linked, so that a watch sees it created; a directory or a replacement is renamed.
    pub fn place(mut self, to: &CStr, overwrite: bool) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        if !overwrite && dir.link(&self.name, dir, to).is_ok() {
            return Ok(());
        }
        if overwrite {
            dir.rename(&self.name, dir, to)?;
        } else {
            dir.rename_to_new(&self.name, dir, to)?;
        }
        self.dir = None;
        Ok(())
    }
}

impl Drop for TempTree {
    fn drop(&mut self) {
        let Some(dir) = self.dir.take() else { return };
        if dir.remove_file(&self.name).is_err() {
            // A tree of any size: other calls go on while it is removed.
            let name = self.name.clone();
            spawn_local(async move { remove_tree(&dir, &name).await });
        }
    }
}
