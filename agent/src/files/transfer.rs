//! Moves an entry to another file system: a copy under a temporary name, put in place at once, then the old one goes.
//! Extended attributes and hard links do not come along.

use super::copy::{copy_entry, set_attributes};
use super::descent::Descent;
use super::dir::Dir;
use super::removal::remove_tree;
use super::stat::{Kind, Stat};
use super::temp_tree::TempTree;
use super::walk::{Limits, Visit, Walk, is_gone};
use std::ffi::CStr;
use std::io;

pub async fn transfer(from: &Dir, name: &CStr, to: &Dir, to_name: &CStr, overwrite: bool) -> io::Result<()> {
    let stat = from.stat_entry(name)?;
    let temp = TempTree::new(to.try_clone()?)?;
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
    temp.place(to_name, overwrite)?;
    match stat.kind() {
        Kind::Directory => remove_tree(from, name).await,
        _ => from.remove_file(name),
    }
}

async fn copy_contents(from: Dir, to: Dir) -> io::Result<()> {
    let mut copies = Descent::new(to);
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

/// Whether a directory lies in a tree, which could then never be copied whole.
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
