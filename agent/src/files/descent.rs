//! A place in a tree with one directory open, however deep it is.
//!
//! Going up opens `..` and checks that it is the directory this came from: a tree that is moved meanwhile ends the
//! journey instead of leading it elsewhere.

use super::dir::Dir;
use std::ffi::CStr;
use std::io;

#[derive(Debug)]
pub struct Descent {
    dir: Dir,
    /// Which directories are above the open one, outermost first.
    above: Vec<(u64, u64)>,
}

impl Descent {
    pub fn new(top: Dir) -> Self {
        Self { dir: top, above: Vec::new() }
    }

    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Never follows a symlink.
    pub fn enter(&mut self, name: &CStr) -> io::Result<()> {
        let child = self.dir.child(name)?;
        self.above.push(self.dir.stat()?.identity());
        self.dir = child;
        Ok(())
    }

    pub fn leave(&mut self) -> io::Result<()> {
        let parent = self.dir.parent()?;
        if self.above.pop() != Some(parent.stat()?.identity()) {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        self.dir = parent;
        Ok(())
    }
}
