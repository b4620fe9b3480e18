//! A position in a directory tree of any depth that keeps few directories open.
//!
//! The nearest parents stay open. Farther up, the cursor follows `..` and checks that it is the directory it came from, so
//! that a tree that another program moves ends the walk with an error.

use super::dir::Dir;
use std::ffi::CStr;
use std::io;

const OPEN_LEVELS: usize = 16;

#[derive(Debug)]
pub struct TreeCursor {
    dir: Dir,
    /// Outermost first.
    above: Vec<Above>,
}

#[derive(Debug)]
enum Above {
    Open(Dir),
    Closed((u64, u64)),
}

impl TreeCursor {
    pub fn new(top: Dir) -> Self {
        Self { dir: top, above: Vec::new() }
    }

    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Never follows a symlink.
    pub fn enter(&mut self, name: &CStr) -> io::Result<()> {
        let child = self.dir.child(name)?;
        if let Some(at) = self.above.len().checked_sub(OPEN_LEVELS)
            && let Above::Open(dir) = &self.above[at]
        {
            self.above[at] = Above::Closed(dir.stat()?.identity());
        }
        self.above.push(Above::Open(std::mem::replace(&mut self.dir, child)));
        Ok(())
    }

    pub fn leave(&mut self) -> io::Result<()> {
        self.dir = match self.above.pop() {
            Some(Above::Open(dir)) => dir,
            Some(Above::Closed(identity)) => {
                let parent = self.dir.parent()?;
                if parent.stat()?.identity() != identity {
                    return Err(io::Error::from_raw_os_error(libc::ESTALE));
                }
                parent
            }
            None => return Err(io::Error::from_raw_os_error(libc::ENOENT)),
        };
        Ok(())
    }
}
