//! An open directory and the calls that name an entry relative to it.

use super::stat::Stat;
use crate::os::{self, own};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names entries only: needs no read permission, and the directory cannot be listed.
const NAMING: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
const READING: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    /// Follows symlinks. The directory cannot be listed.
    pub fn open(path: &Path) -> io::Result<Self> {
        open_at(libc::AT_FDCWD, &c_string(path.as_os_str().as_bytes())?, NAMING, 0).map(Self)
    }

    /// Follows symlinks.
    pub fn open_for_reading(path: &Path) -> io::Result<Self> {
        open_at(libc::AT_FDCWD, &c_string(path.as_os_str().as_bytes())?, READING, 0).map(Self)
    }

    /// Opens a subdirectory. Refuses a symlink with ENOTDIR or ELOOP.
    pub fn child(&self, name: &CStr) -> io::Result<Self> {
        open_at(self.raw(), name, READING | libc::O_NOFOLLOW, 0).map(Self)
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub fn parent(&self) -> io::Result<Self> {
        open_at(self.raw(), c"..", READING, 0).map(Self)
    }

    /// Opens an entry of any kind without the side effects of opening a device.
    pub fn handle(&self, name: &CStr) -> io::Result<OwnedFd> {
        open_at(self.raw(), name, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0)
    }

    /// Opens a file. Never follows a symlink and never waits for the other end of a FIFO.
    pub fn open_file(&self, name: &CStr) -> io::Result<File> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
        open_at(self.raw(), name, flags, 0).map(File::from)
    }

    /// Creates a file; fails when the name is taken.
    pub fn create_file(&self, name: &CStr, mode: u32) -> io::Result<File> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        open_at(self.raw(), name, flags, mode).map(File::from)
    }

    pub fn stat(&self) -> io::Result<Stat> {
        stat_fd(self.0.as_fd())
    }

    /// Describes an entry. For a symlink, describes the link itself.
    pub fn stat_entry(&self, name: &CStr) -> io::Result<Stat> {
        // SAFETY: the name is NUL-terminated and the structure is writable.
        Stat::fill(|stat| unsafe { libc::fstatat(self.raw(), name.as_ptr(), stat, libc::AT_SYMLINK_NOFOLLOW) })
    }

    pub fn make_dir(&self, name: &CStr, mode: u32) -> io::Result<()> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { libc::mkdirat(self.raw(), name.as_ptr(), mode) })
    }

    pub fn remove_file(&self, name: &CStr) -> io::Result<()> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { libc::unlinkat(self.raw(), name.as_ptr(), 0) })
    }

    pub fn remove_dir(&self, name: &CStr) -> io::Result<()> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { libc::unlinkat(self.raw(), name.as_ptr(), libc::AT_REMOVEDIR) })
    }

    /// Gives a file a second name; fails when that name is taken.
    pub fn link(&self, name: &CStr, to_dir: &Dir, to: &CStr) -> io::Result<()> {
        // SAFETY: both names are NUL-terminated.
        check(unsafe { libc::linkat(self.raw(), name.as_ptr(), to_dir.raw(), to.as_ptr(), 0) })
    }

    pub fn rename(&self, name: &CStr, to_dir: &Dir, to: &CStr) -> io::Result<()> {
        // SAFETY: both names are NUL-terminated.
        check(unsafe { libc::renameat(self.raw(), name.as_ptr(), to_dir.raw(), to.as_ptr()) })
    }

    /// Like `rename`, but fails when the new name is taken.
    pub fn rename_to_new(&self, name: &CStr, to_dir: &Dir, to: &CStr) -> io::Result<()> {
        let (from, to_raw) = (self.raw(), to_dir.raw());
        // SAFETY: both names are NUL-terminated.
        let renamed =
            check(unsafe { libc::renameat2(from, name.as_ptr(), to_raw, to.as_ptr(), libc::RENAME_NOREPLACE) });
        match renamed.as_ref().map_err(io::Error::raw_os_error) {
            // The filesystem lacks the flag. Checking first leaves a short race for the name.
            Err(Some(libc::EINVAL | libc::ENOSYS)) => match to_dir.stat_entry(to) {
                Ok(_) => Err(io::Error::from_raw_os_error(libc::EEXIST)),
                Err(_) => self.rename(name, to_dir, to),
            },
            _ => renamed,
        }
    }

    pub fn make_symlink(&self, name: &CStr, target: &[u8]) -> io::Result<()> {
        let target = c_string(target)?;
        // SAFETY: both strings are NUL-terminated.
        check(unsafe { libc::symlinkat(target.as_ptr(), self.raw(), name.as_ptr()) })
    }

    /// Creates a FIFO, a socket or a device that only its owner can access.
    pub fn make_node(&self, name: &CStr, like: &Stat) -> io::Result<()> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { libc::mknodat(self.raw(), name.as_ptr(), like.kind_bits() | 0o600, like.device_number()) })
    }

    /// Changes the owner of an entry. For a symlink, of the link itself.
    pub fn chown(&self, name: &CStr, uid: u32, gid: u32) -> io::Result<()> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { libc::fchownat(self.raw(), name.as_ptr(), uid, gid, libc::AT_SYMLINK_NOFOLLOW) })
    }

    pub fn set_modified(&self, name: &CStr, at: libc::timespec) -> io::Result<()> {
        let times = [libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT }, at];
        // SAFETY: the name is NUL-terminated and there are two times.
        check(unsafe { libc::utimensat(self.raw(), name.as_ptr(), times.as_ptr(), libc::AT_SYMLINK_NOFOLLOW) })
    }

    /// The target of a symlink.
    pub fn read_link(&self, name: &CStr) -> io::Result<Vec<u8>> {
        let mut target = vec![0u8; libc::PATH_MAX as usize];
        // SAFETY: the buffer is writable for its length.
        let size = unsafe { libc::readlinkat(self.raw(), name.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        target.truncate(os::check(size)? as usize);
        Ok(target)
    }

    pub(super) fn raw(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub fn stat_fd(fd: BorrowedFd) -> io::Result<Stat> {
    // SAFETY: the descriptor is open and the structure is writable.
    Stat::fill(|stat| unsafe { libc::fstat(fd.as_raw_fd(), stat) })
}

pub fn stat_path(path: &Path, follow: bool) -> io::Result<Stat> {
    let path = c_string(path.as_os_str().as_bytes())?;
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    // SAFETY: the path is NUL-terminated and the structure is writable.
    Stat::fill(|stat| unsafe { libc::fstatat(libc::AT_FDCWD, path.as_ptr(), stat, flags) })
}

pub fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

pub(super) fn check(outcome: i32) -> io::Result<()> {
    os::check(outcome).map(drop)
}

fn open_at(dir: i32, name: &CStr, flags: i32, mode: u32) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated; the new descriptor has no other owner.
    unsafe { own(libc::openat(dir, name.as_ptr(), flags, mode)) }
}
