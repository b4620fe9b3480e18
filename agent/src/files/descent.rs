//! A place in a tree, with few directories open however deep it is.
//!
//! The nearest directories above stay open. Farther up the way back is `..`, checked to be the directory this came
//! from: a tree that is moved meanwhile ends the journey instead of leading it elsewhere.

use super::dir::Dir;
use std::ffi::CStr;
use std::io;

const OPEN_LEVELS: usize = 16;

#[derive(Debug)]
pub struct Descent {
    dir: Dir,
    /// Outermost first.
    above: Vec<Above>,
}

#[derive(Debug)]
enum Above {
    Open(Dir),
    Closed((u64, u64)),
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
