//! The part of a journal that does not fit in memory: a ring in a file that has no name.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Spill {
    file: File,
    /// Journal offset of the first byte ever written here.
    base: u64,
    /// Journal offset of the next byte to be written here.
    next: u64,
    ring_bytes: u64,
}

pub enum Refusal {
    /// No room without overwriting what is still needed; the ring may have shrunk to what the disk could hold.
    Full,
    /// Nothing in the file can be trusted any more.
    Broken,
}

impl Spill {
    pub fn create(directory: &Path, base: u64, ring_bytes: u64) -> io::Result<Self> {
        Ok(Self { file: nameless_file(directory)?, base, next: base, ring_bytes })
    }

    /// Writes the bytes that follow the last ones. Nothing at or after `needed_from` is overwritten.
    pub fn write(&mut self, bytes: &[u8], needed_from: u64) -> Result<(), Refusal> {
        let size = bytes.len() as u64;
        if size > self.ring_bytes || self.next + size > needed_from + self.ring_bytes {
            return Err(Refusal::Full);
        }
        let (mut rest, mut at) = (bytes, self.next);
        while !rest.is_empty() {
            let position = (at - self.base) % self.ring_bytes;
            let piece = rest.len().min((self.ring_bytes - position) as usize);
            match self.file.write_at(&rest[..piece], position) {
                Ok(0) => return Err(self.refuse(libc::EIO)),
                Ok(written) => {
                    rest = &rest[written..];
                    at += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.refuse(error.raw_os_error().unwrap_or(libc::EIO))),
            }
        }
        self.next = at;
        Ok(())
    }

    /// On the first lap the file ends where the disk did, and can go round within what it has.
    fn refuse(&mut self, errno: i32) -> Refusal {
        let is_first_lap = self.next - self.base < self.ring_bytes;
        if is_first_lap && matches!(errno, libc::ENOSPC | libc::EDQUOT | libc::EFBIG) {
            self.ring_bytes = self.next - self.base;
            return Refusal::Full;
        }
        Refusal::Broken
    }

    pub fn read(&self, offset: u64, size: usize) -> io::Result<Vec<u8>> {
        // One more, for the newline that ends an attachment.
        let mut bytes = Vec::with_capacity(size + 1);
        bytes.resize(size, 0);
        let position = (offset - self.base) % self.ring_bytes;
        let first = size.min((self.ring_bytes - position) as usize);
        self.file.read_exact_at(&mut bytes[..first], position)?;
        self.file.read_exact_at(&mut bytes[first..], 0)?;
        Ok(bytes)
    }
}

/// Nothing of it stays behind, however the agent ends.
fn nameless_file(directory: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(directory) {
        return Ok(file);
    }
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("journal-{}-{number}", std::process::id()));
    let file = options.create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
