//! Removes a directory and its contents.

use super::dir::Dir;
use super::walk::{Limits, Visit, Walk};
use std::ffi::CStr;
use std::io;

/// How often to try while other programs add files.
const MAX_ROUNDS: usize = 8;

pub async fn remove_tree(parent: &Dir, name: &CStr) -> io::Result<()> {
    let mut dir = parent.child(name)?;
    for _ in 0..MAX_ROUNDS {
        empty(dir).await?;
        let removed = parent.remove_dir(name);
        match removed.as_ref().map_err(io::Error::raw_os_error) {
            Err(Some(libc::ENOTEMPTY)) => dir = parent.child(name)?,
            // Another program has removed it.
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
            // A directory is removed in `Left`. Another program has removed the entry or added files: the next round sees.
            Ok(()) | Err(Some(libc::EISDIR | libc::ENOENT | libc::ENOTEMPTY)) => {}
            Err(_) => return outcome,
        }
    }
    Ok(())
}
