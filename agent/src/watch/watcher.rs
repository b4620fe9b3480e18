//! Turns the kernel's events into events for the caller, and watches every directory of the tree.

use super::directories::Directories;
use super::event::{Event, Kind};
use super::inotify::Inotify;
use super::queue::Queue;
use crate::files::dir::{Dir, c_string};
use crate::files::temp_entry::is_temp_name;
use crate::files::walk::{Limits, Visit, Walk, is_gone, is_unreadable, join};
use crate::os::inotify::RawEvent;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;

/// How long to wait for the second event of a rename, which the kernel reports right after the first.
const RENAME_WINDOW: Duration = Duration::from_millis(10);
/// How often to scan a tree that other programs move during the scan.
const MAX_ROUNDS: usize = 8;
/// The most scanned entries to remember until the kernel reports them too.
const MAX_SCANNED: usize = 4096;

pub struct Watcher<'a> {
    inotify: Inotify,
    queue: &'a Queue,
    top: PathBuf,
    top_identity: (u64, u64),
    top_watch: i32,
    /// Set when only one entry of the top is watched.
    only: Option<Vec<u8>>,
    is_recursive: bool,
    directories: Directories,
    /// Entries that a scan has reported.
    scanned: HashSet<(i32, Vec<u8>)>,
}

impl<'a> Watcher<'a> {
    /// Watches a single file through its directory, to see its replacements too.
    pub async fn new(path: PathBuf, is_recursive: bool, queue: &'a Queue) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let (top, only) = if path.is_dir() {
            (path, None)
        } else {
            let name = path.file_name().map(|name| name.as_encoded_bytes().to_vec());
            (path.parent().map_or_else(PathBuf::new, PathBuf::from), name)
        };
        let inotify = Inotify::new()?;
        // Closed at once: the kernel does not report the removal of an open directory.
        let (top_identity, top_watch) = {
            let dir = Dir::open_for_reading(&top)?;
            (dir.stat()?.identity(), inotify.add(dir.as_fd())?)
        };
        let is_recursive = is_recursive && only.is_none();
        let (directories, scanned) = (Directories::default(), HashSet::new());
        let mut watcher =
            Self { inotify, queue, top, top_identity, top_watch, only, is_recursive, directories, scanned };
        watcher.directories.insert(top_watch, b"");
        // First in the queue, but the caller takes it only after the scan.
        queue.push(Event::of_top(Kind::Ready));
        watcher.scan_again().await?;
        Ok(watcher)
    }

    /// Runs until the watched path is removed.
    pub async fn run(&mut self) -> io::Result<()> {
        loop {
            let batch = match self.inotify.try_read()? {
                Some(batch) => batch,
                None => {
                    // All of the kernel's own reports about scanned entries have been read.
                    self.scanned = HashSet::new();
                    self.inotify.read().await?
                }
            };
            // The code inside may cause events faster than this reads them.
            yield_now().await;
            let mut batch = VecDeque::from(batch);
            while let Some(event) = batch.pop_front() {
                if event.is(libc::IN_MOVED_FROM) {
                    let to = self.rename_target(&mut batch, event.cookie).await?;
                    self.moved(&event, to.as_ref()).await?;
                } else if !self.changed(&event).await? {
                    self.queue.close();
                    return Ok(());
                }
            }
        }
    }

    async fn rename_target(&self, batch: &mut VecDeque<RawEvent>, cookie: u32) -> io::Result<Option<RawEvent>> {
        if batch.is_empty()
            && let Ok(more) = timeout(RENAME_WINDOW, self.inotify.read()).await
        {
            batch.extend(more?);
        }
        let at = batch.iter().position(|event| event.is(libc::IN_MOVED_TO) && event.cookie == cookie);
        Ok(at.and_then(|at| batch.remove(at)))
    }

    async fn moved(&mut self, from: &RawEvent, to: Option<&RawEvent>) -> io::Result<()> {
        self.scanned.remove(&(from.watch, from.name.clone()));
        let was = self.path_of(from);
        let is = to.and_then(|to| self.path_of(to));
        let is_directory = from.is(libc::IN_ISDIR);
        match (was, is) {
            (Some(path), Some(to)) => {
                self.queue.push(Event::rename(path.clone(), to.clone()));
                if is_directory && self.is_recursive {
                    self.directories.rename(&path, &to);
                    // The rename may have come before the watch under the first name.
                    self.watch_tree(&to, true).await?;
                }
            }
            (Some(path), None) => {
                if is_directory {
                    self.directories.remove_tree(&path).into_iter().for_each(|watch| self.inotify.remove(watch));
                }
                self.queue.push(Event::new(Kind::Remove, path));
            }
            // The agent has replaced this file with a temporary one.
            (None, Some(path)) if is_temp_name(&from.name) && !is_directory => {
                self.queue.push(Event::new(Kind::Write, path));
            }
            (None, Some(path)) => self.appeared(path, is_directory).await?,
            (None, None) => {}
        }
        Ok(())
    }

    /// False when the watched path is gone.
    async fn changed(&mut self, event: &RawEvent) -> io::Result<bool> {
        if event.is(libc::IN_Q_OVERFLOW) {
            self.queue.push(Event::of_top(Kind::Overflow));
            self.scan_again().await?;
            return Ok(true);
        }
        if event.name.is_empty() {
            return Ok(self.changed_itself(event));
        }
        let Some(path) = self.path_of(event) else { return Ok(true) };
        let key = (event.watch, event.name.clone());
        if event.is(libc::IN_CREATE | libc::IN_MOVED_TO) {
            if !self.scanned.remove(&key) {
                self.appeared(path, event.is(libc::IN_ISDIR)).await?;
            }
        } else if event.is(libc::IN_DELETE) {
            self.scanned.remove(&key);
            self.queue.push(Event::new(Kind::Remove, path));
        } else {
            let kind = if event.is(libc::IN_MODIFY) { Kind::Write } else { Kind::Chmod };
            self.queue.push(Event::new(kind, path));
        }
        Ok(true)
    }

    /// An event of a watched directory itself. Subdirectories are skipped: their parents report the same.
    fn changed_itself(&mut self, event: &RawEvent) -> bool {
        if event.is(libc::IN_IGNORED) {
            self.directories.remove(event.watch);
        }
        if event.watch != self.top_watch {
            return true;
        }
        if event.is(libc::IN_ATTRIB) && self.only.is_none() {
            self.queue.push(Event::of_top(Kind::Chmod));
        }
        let is_gone = event.is(libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_UNMOUNT | libc::IN_IGNORED);
        if is_gone {
            self.queue.push(Event::of_top(Kind::Remove));
        }
        !is_gone
    }

    /// None for an entry that the watch does not report.
    fn path_of(&self, event: &RawEvent) -> Option<Vec<u8>> {
        if is_temp_name(&event.name) {
            return None;
        }
        match &self.only {
            Some(only) => (*only == event.name).then(Vec::new),
            None => self.directories.path_of(event.watch, &event.name),
        }
    }

    async fn appeared(&mut self, path: Vec<u8>, is_directory: bool) -> io::Result<()> {
        self.queue.push(Event::new(Kind::Create, path.clone()));
        if is_directory && self.is_recursive {
            self.watch_tree(&path, true).await?;
        }
        Ok(())
    }

    /// Scans and watches the whole tree, also after events were lost.
    async fn scan_again(&mut self) -> io::Result<()> {
        if !self.is_recursive {
            return Ok(());
        }
        let before = std::mem::take(&mut self.directories);
        self.watch_tree(b"", false).await?;
        before
            .watches()
            .filter(|watch| !self.directories.contains(*watch))
            .for_each(|watch| self.inotify.remove(watch));
        Ok(())
    }

    /// Watches a directory and everything below. With `announce`, reports its entries as created: they may be older than
    /// the watch.
    async fn watch_tree(&mut self, path: &[u8], announce: bool) -> io::Result<()> {
        for _ in 0..MAX_ROUNDS {
            match self.watch_below(path, announce).await {
                Err(error) if is_gone(&error) || is_unreadable(&error) => return Ok(()),
                // Moved during the scan: the next round watches what this one missed, but does not report it.
                Err(error) if error.raw_os_error() == Some(libc::ESTALE) => {
                    self.queue.push(Event::of_top(Kind::Overflow));
                    self.directories.remove_tree(path);
                }
                outcome => return outcome,
            }
        }
        Ok(())
    }

    async fn watch_below(&mut self, path: &[u8], announce: bool) -> io::Result<()> {
        let dir = self.open(path)?;
        let watch = self.inotify.add(dir.as_fd())?;
        if !self.directories.insert(watch, path) {
            return Ok(());
        }
        let mut watches = vec![watch];
        let mut walk = Walk::new(dir, Limits { skip_unreadable: true, ..Limits::default() });
        while let Some(visit) = walk.next().await? {
            match visit {
                Visit::Entry(name) if announce => {
                    self.queue.push(Event::new(Kind::Create, join(path, &walk.path_of(&name))));
                    if let Some(watch) = watches.last()
                        && self.scanned.len() < MAX_SCANNED
                    {
                        self.scanned.insert((*watch, name.into_bytes()));
                    }
                }
                Visit::Entry(_) => {}
                Visit::Entered(_) => {
                    let watch = self.inotify.add(walk.dir().as_fd())?;
                    self.directories.insert(watch, &join(path, walk.path()));
                    watches.push(watch);
                }
                Visit::Left(_) => {
                    watches.pop();
                }
            }
        }
        Ok(())
    }

    /// Opens a directory of the tree; fails when the top has been moved.
    fn open(&self, path: &[u8]) -> io::Result<Dir> {
        let mut dir = Dir::open_for_reading(&self.top)?;
        if dir.stat()?.identity() != self.top_identity {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            dir = dir.child(&c_string(name)?)?;
        }
        Ok(dir)
    }
}
