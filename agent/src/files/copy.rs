//! Copies one entry with its owner, permissions and modification time.

use super::dir::{Dir, stat_fd};
use super::stat::{Kind, Stat};
use crate::os::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use tokio::task::yield_now;

const PIECE_BYTES: usize = 1024 * 1024;

/// Creates a directory empty and private; call `set_attributes` when it is filled.
pub async fn copy_entry(from: &Dir, name: &CStr, stat: &Stat, to: &Dir, to_name: &CStr) -> io::Result<()> {
    match stat.kind() {
        Kind::Directory => return to.make_dir(to_name, 0o700),
        Kind::File => copy_contents(&from.open_file(name)?, &to.create_file(to_name, 0o600)?).await?,
        Kind::Symlink => to.make_symlink(to_name, &from.read_link(name)?)?,
        Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharDevice => to.make_node(to_name, stat)?,
    }
    set_attributes(to, to_name, stat)
}

pub fn set_attributes(dir: &Dir, name: &CStr, stat: &Stat) -> io::Result<()> {
    let now = dir.stat_entry(name)?;
    if (now.uid(), now.gid()) != (stat.uid(), stat.gid()) {
        dir.chown(name, stat.uid(), stat.gid())?;
    }
    if stat.kind() != Kind::Symlink {
        super::chmod::chmod_entry(dir, name, stat.mode(), stat.mode())?;
    }
    dir.set_modified(name, stat.modified())
}

async fn copy_contents(from: &File, to: &File) -> io::Result<()> {
    if stat_fd(from.as_fd())?.kind() != Kind::File {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    loop {
        // SAFETY: both descriptors are open, and the file's own position is used.
        let sent = unsafe { libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), std::ptr::null_mut(), PIECE_BYTES) };
        if check(sent)? == 0 {
            return Ok(());
        }
        yield_now().await;
    }
}
