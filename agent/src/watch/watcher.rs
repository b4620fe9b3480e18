//! Makes events of what the kernel reports, and keeps every directory of the tree watched.

use super::directories::{Directories, join};
use super::event::{Event, Path};
use super::inotify::{Inotify, RawEvent};
use super::queue::Queue;
use crate::files::dir::{Dir, c_string};
use crate::files::temp_file::is_temp_name;
use crate::files::walk::{Limits, Visit, Walk, is_gone, is_unreadable};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;

/// How long the first half of a rename waits for the second, which the kernel reports right after it.
const RENAME_WINDOW: Duration = Duration::from_millis(10);
/// How often a tree is looked through that is moved about meanwhile.
const MAX_ROUNDS: usize = 8;
/// Entries found by looking that are remembered until the kernel's own report of them has passed.
const MAX_FOUND: usize = 4096;

pub struct Watcher<'a> {
    inotify: Inotify,
    queue: &'a Queue,
    top: PathBuf,
    top_identity: (u64, u64),
    top_watch: i32,
    /// Set when one entry of the top is watched and not the top itself.
    only: Option<Vec<u8>>,
    is_recursive: bool,
    directories: Directories,
    found: HashSet<(i32, Vec<u8>)>,
}

impl<'a> Watcher<'a> {
    /// A single file is watched through its directory, so that its replacements are seen too.
    pub async fn new(path: PathBuf, is_recursive: bool, queue: &'a Queue) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let (top, only) = if path.is_dir() {
            (path, None)
        } else {
            let name = path.file_name().map(|name| name.as_encoded_bytes().to_vec());
            (path.parent().map_or_else(PathBuf::new, PathBuf::from), name)
        };
        let inotify = Inotify::new()?;
        // Closed again at once: the kernel does not report the removal of a directory that somebody holds open.
        let (top_identity, top_watch) = {
            let dir = Dir::open_for_reading(&top)?;
            (dir.stat()?.identity(), inotify.add(dir.as_fd())?)
        };
        let is_recursive = is_recursive && only.is_none();
        let (directories, found) = (Directories::default(), HashSet::new());
        let mut watcher = Self { inotify, queue, top, top_identity, top_watch, only, is_recursive, directories, found };
        watcher.directories.insert(top_watch, b"");
        // First in the queue, and sent when this is done.
        queue.push(Event::ready());
        watcher.look_again().await?;
        Ok(watcher)
    }

    /// Until what is watched is gone.
    pub async fn run(&mut self) -> io::Result<()> {
        loop {
            let batch = match self.inotify.try_read()? {
                Some(batch) => batch,
                None => {
                    // The kernel's own reports of what was found by looking have all been read.
                    self.found = HashSet::new();
                    self.inotify.read().await?
                }
            };
            // The code inside may make events faster than they can be read.
            yield_now().await;
            let mut batch = VecDeque::from(batch);
            while let Some(event) = batch.pop_front() {
                if event.is(libc::IN_MOVED_FROM) {
                    let to = self.second_half(&mut batch, event.cookie).await?;
                    self.moved(&event, to.as_ref()).await?;
                } else if !self.changed(&event).await? {
                    self.queue.close();
                    return Ok(());
                }
            }
        }
    }

    async fn second_half(&self, batch: &mut VecDeque<RawEvent>, cookie: u32) -> io::Result<Option<RawEvent>> {
        if batch.is_empty()
            && let Ok(more) = timeout(RENAME_WINDOW, self.inotify.read()).await
        {
            batch.extend(more?);
        }
        let at = batch.iter().position(|event| event.is(libc::IN_MOVED_TO) && event.cookie == cookie);
        Ok(at.and_then(|at| batch.remove(at)))
    }

    async fn moved(&mut self, from: &RawEvent, to: Option<&RawEvent>) -> io::Result<()> {
        self.found.remove(&(from.watch, from.name.clone()));
        let was = self.path_of(from);
        let is = to.and_then(|to| self.path_of(to));
        let is_directory = from.is(libc::IN_ISDIR);
        match (was, is) {
            (Some(path), Some(to)) => {
                self.queue.push(Event::Rename { path: Path(path.clone()), to: Path(to.clone()) });
                if is_directory && self.is_recursive {
                    self.directories.rename(&path, &to);
                    // It may have been renamed before there was time to watch it under its first name.
                    self.watch_tree(&to, true).await?;
                }
            }
            (Some(path), None) => {
                if is_directory {
                    self.directories.remove_tree(&path).into_iter().for_each(|watch| self.inotify.remove(watch));
                }
                self.queue.push(Event::Remove { path: Path(path) });
            }
            // A file that the agent wrote aside to replace this one.
            (None, Some(path)) if is_temp_name(&from.name) && !is_directory => {
                self.queue.push(Event::Write { path: Path(path) });
            }
            (None, Some(path)) => self.appeared(path, is_directory).await?,
            (None, None) => {}
        }
        Ok(())
    }

    /// False when what is watched is gone.
    async fn changed(&mut self, event: &RawEvent) -> io::Result<bool> {
        if event.is(libc::IN_Q_OVERFLOW) {
            self.queue.push(Event::overflow());
            self.look_again().await?;
            return Ok(true);
        }
        if event.name.is_empty() {
            return Ok(self.changed_itself(event));
        }
        let Some(path) = self.path_of(event) else { return Ok(true) };
        let key = (event.watch, event.name.clone());
        if event.is(libc::IN_CREATE | libc::IN_MOVED_TO) {
            if !self.found.remove(&key) {
                self.appeared(path, event.is(libc::IN_ISDIR)).await?;
            }
        } else if event.is(libc::IN_DELETE) {
            self.found.remove(&key);
            self.queue.push(Event::Remove { path: Path(path) });
        } else {
            let path = Path(path);
            self.queue.push(if event.is(libc::IN_MODIFY) { Event::Write { path } } else { Event::Chmod { path } });
        }
        Ok(true)
    }

    /// An event of a watched directory itself. Those of subdirectories come from their parents as well.
    fn changed_itself(&mut self, event: &RawEvent) -> bool {
        if event.is(libc::IN_IGNORED) {
            self.directories.remove(event.watch);
        }
        if event.watch != self.top_watch {
            return true;
        }
        if event.is(libc::IN_ATTRIB) && self.only.is_none() {
            self.queue.push(Event::Chmod { path: Path::default() });
        }
        let is_gone = event.is(libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_UNMOUNT | libc::IN_IGNORED);
        if is_gone {
            self.queue.push(Event::Remove { path: Path::default() });
        }
        !is_gone
    }

    /// None for what is not to be reported.
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
        self.queue.push(Event::Create { path: Path(path.clone()) });
        if is_directory && self.is_recursive {
            self.watch_tree(&path, true).await?;
        }
        Ok(())
    }

    /// Watches the whole tree anew, after events were lost.
    async fn look_again(&mut self) -> io::Result<()> {
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

    /// Watches a directory and everything below. With `announce`, what is in it already is reported as created: it may
    /// have come before the watch.
    async fn watch_tree(&mut self, path: &[u8], announce: bool) -> io::Result<()> {
        for _ in 0..MAX_ROUNDS {
            match self.watch_below(path, announce).await {
                Err(error) if is_gone(&error) || is_unreadable(&error) => return Ok(()),
                // Moved while it was looked through: what was missed is watched in the next round, but not reported.
                Err(error) if error.raw_os_error() == Some(libc::ESTALE) => {
                    self.queue.push(Event::overflow());
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
                    let path = join(path, &walk.path_of(&name));
                    self.queue.push(Event::Create { path: Path(path) });
                    if let Some(watch) = watches.last()
                        && self.found.len() < MAX_FOUND
                    {
                        self.found.insert((*watch, name.into_bytes()));
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

    /// Opens a directory of the tree; fails when the top is not where it was.
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
