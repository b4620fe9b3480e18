//! Moves an entry to another filesystem: copies it under a temporary name, renames the copy, then removes the original.
//! The copy has no extended attributes and shares no hard links.

use super::copy::{copy_entry, set_attributes};
use super::dir::Dir;
use super::remove_tree::remove_tree;
use super::stat::{Kind, Stat};
use super::temp_entry::TempEntry;
use super::tree_cursor::TreeCursor;
use super::walk::{Limits, Visit, Walk, is_gone};
use std::ffi::CStr;
use std::io;

pub async fn move_across(from: &Dir, name: &CStr, to: &Dir, to_name: &CStr, overwrite: bool) -> io::Result<()> {
    let stat = from.stat_entry(name)?;
    let temp = TempEntry::new(to)?;
    if stat.kind() == Kind::Directory {
        if is_inside(to, &stat)? {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        to.make_dir(temp.name(), 0o700)?;
        copy_contents(from.child(name)?, to.child(temp.name())?).await?;
        set_attributes(to, temp.name(), &stat)?;
    } else {
        copy_entry(from, name, &stat, to, temp.name()).await?;
    }
    if overwrite {
        temp.place(to, to_name, true)?
    } else {
        temp.place_new(to, to_name)?
    }
    match stat.kind() {
        Kind::Directory => remove_tree(from, name).await,
        _ => from.remove_file(name),
    }
}

async fn copy_contents(from: Dir, to: Dir) -> io::Result<()> {
    let mut copies = TreeCursor::new(to);
    let mut walk = Walk::new(from, Limits::default());
    while let Some(visit) = walk.next().await? {
        match visit {
            Visit::Entry(name) => match walk.dir().stat_entry(&name) {
                Ok(stat) => copy_entry(walk.dir(), &name, &stat, copies.dir(), &name).await?,
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            },
            Visit::Entered(name) => copies.enter(&name)?,
            Visit::Left(name) => {
                copies.leave()?;
                set_attributes(copies.dir(), &name, &walk.dir().stat_entry(&name)?)?;
            }
        }
    }
    Ok(())
}

/// Whether a directory lies in a tree, which cannot be copied into itself.
fn is_inside(dir: &Dir, tree: &Stat) -> io::Result<bool> {
    let mut place = dir.try_clone()?;
    loop {
        let identity = place.stat()?.identity();
        if identity == tree.identity() {
            return Ok(true);
        }
        let parent = place.parent()?;
        if parent.stat()?.identity() == identity {
            return Ok(false);
        }
        place = parent;
    }
}
