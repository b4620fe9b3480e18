//! Sets permissions and never follows a symlink.

use super::dir::{Dir, check, stat_fd};
use super::stat::Kind;
use super::walk::{Limits, Visit, Walk, is_gone};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Keeps a directory accessible while its contents change.
const OWNER_MAY_ENTER: u32 = 0o700;

/// Changes everything in a directory, but not the directory itself. Skips symlinks, which have no permissions.
pub async fn chmod_contents(dir: Dir, mode: u32) -> io::Result<()> {
    let mut walk = Walk::new(dir, Limits::default());
    while let Some(visit) = walk.next().await? {
        let outcome = match visit {
            Visit::Entry(name) => chmod_entry(walk.dir(), &name, mode, mode | OWNER_MAY_ENTER),
            Visit::Entered(_) => Ok(()),
            Visit::Left(name) => chmod_entry(walk.dir(), &name, mode, mode),
        };
        match outcome {
            Err(error) if is_gone(&error) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

pub fn chmod_entry(dir: &Dir, name: &CStr, mode: u32, directory_mode: u32) -> io::Result<()> {
    let entry = dir.handle(name)?;
    let mode = match stat_fd(entry.as_fd())?.kind() {
        Kind::Symlink => return Ok(()),
        Kind::Directory => directory_mode,
        _ => mode,
    };
    // fchmod refuses an O_PATH descriptor. Its link in /proc works and always leads to the same entry.
    let link = CString::new(format!("/proc/self/fd/{}", entry.as_raw_fd()))?;
    // SAFETY: the path is NUL-terminated.
    check(unsafe { libc::chmod(link.as_ptr(), mode) })
}
