//! Visits a tree in the byte order of its paths, with bounded memory and without following symlinks.

use super::dir::{Dir, c_string};
use super::sorted_names::{self, Batch};
use super::time_slice::TimeSlice;
use super::tree_cursor::TreeCursor;
use std::ffi::{CStr, CString};
use std::io;

/// Memory for the names of the top directory. Each level below gets half of the one above.
const TOP_BUDGET_BYTES: usize = 8 * 1024 * 1024;
const MIN_BUDGET_BYTES: usize = 64 * 1024;

pub enum Visit {
    /// An entry of any kind. The contents of a directory follow later, between `Entered` and `Left`.
    Entry(CString),
    Entered(CString),
    Left(CString),
}

#[derive(Default)]
pub struct Limits {
    /// 1 = only the directory's own entries; 0 = no limit.
    pub depth: usize,
    /// Skips the contents of directories with a longer path; 0 = no limit.
    pub path_bytes: usize,
    /// Skips what the agent may not read, instead of ending the walk.
    pub skip_unreadable: bool,
}

impl Limits {
    fn skips(&self, error: &io::Error) -> bool {
        is_gone(error) || (self.skip_unreadable && is_unreadable(error))
    }
}

#[derive(Default)]
struct Level {
    keys: std::vec::IntoIter<Vec<u8>>,
    last: Vec<u8>,
    is_complete: bool,
    /// Where this directory's name begins in the path.
    name_at: usize,
}

pub struct Walk {
    cursor: TreeCursor,
    /// The path of the open directory, relative to the top.
    path: Vec<u8>,
    levels: Vec<Level>,
    limits: Limits,
    time_slice: TimeSlice,
}

impl Walk {
    pub fn new(top: Dir, limits: Limits) -> Self {
        let levels = vec![Level::default()];
        Self { cursor: TreeCursor::new(top), path: Vec::new(), levels, limits, time_slice: TimeSlice::default() }
    }

    /// The directory of the entry visited last, or the directory just entered.
    pub fn dir(&self) -> &Dir {
        self.cursor.dir()
    }

    /// The path of the open directory, relative to the top.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path of an entry of the open directory, relative to the top.
    pub fn path_of(&self, name: &CStr) -> Vec<u8> {
        join(&self.path, name.to_bytes())
    }

    pub async fn next(&mut self) -> io::Result<Option<Visit>> {
        loop {
            self.time_slice.step().await;
            let depth = self.levels.len();
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            if let Some(mut key) = level.keys.next() {
                if key.last() != Some(&b'/') {
                    return Ok(Some(Visit::Entry(c_string(&key)?)));
                }
                key.pop();
                let name = c_string(&key)?;
                if self.enter(&name)? {
                    return Ok(Some(Visit::Entered(name)));
                }
            } else if !level.is_complete {
                let budget_bytes = (TOP_BUDGET_BYTES >> (depth - 1).min(16)).max(MIN_BUDGET_BYTES);
                let with_contents = self.limits.depth == 0 || depth < self.limits.depth;
                let dir = self.cursor.dir();
                match sorted_names::batch_after(dir, &level.last, budget_bytes, with_contents, &mut self.time_slice)
                    .await
                {
                    Ok(batch) => level.refill(batch),
                    Err(error) if self.limits.skips(&error) => level.is_complete = true,
                    Err(error) => return Err(error),
                }
            } else if depth == 1 {
                return Ok(None);
            } else {
                return self.leave().map(Some);
            }
        }
    }

    /// False when the directory has been removed or replaced, or exceeds the limits.
    fn enter(&mut self, name: &CStr) -> io::Result<bool> {
        let path = self.path_of(name);
        if self.limits.path_bytes > 0 && path.len() > self.limits.path_bytes {
            return Ok(false);
        }
        if let Err(error) = self.cursor.enter(name) {
            return if self.limits.skips(&error) { Ok(false) } else { Err(error) };
        }
        self.levels.push(Level { name_at: path.len() - name.count_bytes(), ..Level::default() });
        self.path = path;
        Ok(true)
    }

    fn leave(&mut self) -> io::Result<Visit> {
        self.cursor.leave()?;
        let name_at = self.levels.pop().map_or(0, |level| level.name_at);
        let name = c_string(&self.path[name_at..])?;
        self.path.truncate(name_at.saturating_sub(1));
        Ok(Visit::Left(name))
    }
}

/// The path of the top is empty, and so is the name of a directory in itself.
pub fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let separator: &[u8] = if dir.is_empty() || name.is_empty() { b"" } else { b"/" };
    [dir, separator, name].concat()
}

/// Removed or replaced since its name was read. /proc reports ESRCH for a process that has exited.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ESRCH))
}

/// Even root cannot read parts of /proc. It reports EINVAL for the network of a process that has exited.
pub fn is_unreadable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::EINVAL))
}

impl Level {
    fn refill(&mut self, batch: Batch) {
        if let Some(last) = batch.keys.last() {
            self.last.clone_from(last);
        }
        self.keys = batch.keys.into_iter();
        self.is_complete = batch.is_complete;
    }
}
