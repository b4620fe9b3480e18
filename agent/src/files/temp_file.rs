//! A file under a name nobody asked for, removed when it is dropped before it got its real one.

use super::dir::{Dir, c_string};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;

const PREFIX: &str = ".sandpiper-";
const RANDOM_DIGITS: usize = 16;

#[derive(Debug)]
pub struct TempFile {
    dir: Dir,
    name: CString,
    pub file: File,
    is_placed: bool,
}

impl TempFile {
    pub fn create(dir: Dir) -> io::Result<Self> {
        let name = random_name()?;
        // Nobody else reads it before its owner and mode are known.
        let file = dir.create_file(&name, 0o600)?;
        Ok(Self { dir, name, file, is_placed: false })
    }

    /// Gives the file its real name in one step. A new file is linked, so that a watch sees it created; only a
    /// replacement is renamed.
    pub fn place(mut self, to_dir: &Dir, to: &CStr, replaces: bool) -> io::Result<()> {
        if !replaces && self.dir.link(&self.name, to_dir, to).is_ok() {
            return Ok(());
        }
        self.dir.rename(&self.name, to_dir, to)?;
        self.is_placed = true;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.is_placed {
            // When it cannot be removed, nobody is left to tell.
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Whether a name is one of ours; a watch does not report those.
pub fn is_temp_name(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == RANDOM_DIGITS && rest.iter().all(u8::is_ascii_hexdigit))
}

pub fn random_name() -> io::Result<CString> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is writable for its length.
    if unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    c_string(format!("{PREFIX}{:0RANDOM_DIGITS$x}", u64::from_ne_bytes(bytes)).as_bytes())
}
