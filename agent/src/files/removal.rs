//! Removes a directory with everything in it.

use super::dir::Dir;
use super::walk::{Limits, Visit, Walk};
use std::ffi::CStr;
use std::io;

/// How often the tree is gone through when files are added to it meanwhile.
const MAX_ROUNDS: usize = 8;

pub async fn remove_tree(parent: &Dir, name: &CStr) -> io::Result<()> {
    let mut dir = parent.child(name)?;
    for _ in 0..MAX_ROUNDS {
        empty(dir).await?;
        let removed = parent.remove_dir(name);
        match removed.as_ref().map_err(io::Error::raw_os_error) {
            Err(Some(libc::ENOTEMPTY)) => dir = parent.child(name)?,
            // Somebody else was quicker.
            Err(Some(libc::ENOENT)) => return Ok(()),
            _ => return removed,
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENOTEMPTY))
}

async fn empty(dir: Dir) -> io::Result<()> {
    let mut walk = Walk::new(dir, Limits::default());
    while let Some(visit) = walk.next().await? {
        let outcome = match visit {
            Visit::Entry(name) => walk.dir().remove_file(&name),
            Visit::Entered(_) => Ok(()),
            Visit::Left(name) => walk.dir().remove_dir(&name),
        };
        match outcome.as_ref().map_err(io::Error::raw_os_error) {
            // A directory is removed when it is left; others are gone already or were added to, and the next round sees.
            Ok(()) | Err(Some(libc::EISDIR | libc::ENOENT | libc::ENOTEMPTY)) => {}
            Err(_) => return outcome,
        }
    }
    Ok(())
}
