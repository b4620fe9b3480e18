//! A fresh volume belongs to root alone; opened, everybody inside can use it.

use crate::user::User;
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Gives a directory to a user, and lets all others write in it too. What is in it stays as it is.
pub fn open_dir(path: &Path, owner: &User) -> io::Result<()> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let dir = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    fchown(&dir, Some(owner.uid), Some(owner.gid))?;
    dir.set_permissions(Permissions::from_mode(0o777))
}
