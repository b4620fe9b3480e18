//! The attributes of an entry.

use crate::os::check;
use std::io;
use std::mem::MaybeUninit;

#[derive(Clone, Copy)]
pub struct Stat(libc::stat);

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    BlockDevice,
    CharDevice,
}

impl Stat {
    /// Runs a stat call.
    pub(super) fn fill(call: impl FnOnce(*mut libc::stat) -> i32) -> io::Result<Self> {
        let mut stat = MaybeUninit::<libc::stat>::zeroed();
        check(call(stat.as_mut_ptr()))?;
        // SAFETY: stat is plain data, and all zeros is a valid value.
        Ok(Self(unsafe { stat.assume_init() }))
    }

    pub fn kind(&self) -> Kind {
        match self.kind_bits() {
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Symlink,
            libc::S_IFIFO => Kind::Fifo,
            libc::S_IFSOCK => Kind::Socket,
            libc::S_IFBLK => Kind::BlockDevice,
            libc::S_IFCHR => Kind::CharDevice,
            _ => Kind::File,
        }
    }

    /// The kind in the encoding of mknod.
    pub fn kind_bits(&self) -> u32 {
        self.0.st_mode & libc::S_IFMT
    }

    pub fn size(&self) -> u64 {
        self.0.st_size.max(0) as u64
    }

    /// Only the permission bits.
    pub fn mode(&self) -> u32 {
        self.0.st_mode & 0o7777
    }

    pub fn uid(&self) -> u32 {
        self.0.st_uid
    }

    pub fn gid(&self) -> u32 {
        self.0.st_gid
    }

    pub fn device_number(&self) -> libc::dev_t {
        self.0.st_rdev
    }

    /// Identifies a file or directory independent of its name.
    pub fn identity(&self) -> (u64, u64) {
        (self.0.st_dev, self.0.st_ino)
    }

    pub fn modified(&self) -> libc::timespec {
        libc::timespec { tv_sec: self.0.st_mtime, tv_nsec: self.0.st_mtime_nsec }
    }

    pub fn modified_at_ms(&self) -> f64 {
        self.0.st_mtime as f64 * 1e3 + (self.0.st_mtime_nsec / 1000) as f64 / 1e3
    }
}
