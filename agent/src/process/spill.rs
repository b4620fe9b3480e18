//! The part of a journal that does not fit in memory: a ring buffer in an unnamed file.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Spill {
    file: File,
    /// The journal offset of the first byte written to the file.
    base: u64,
    ring_bytes: u64,
}

impl Spill {
    pub fn create(directory: &Path, base: u64, ring_bytes: u64) -> io::Result<Self> {
        Ok(Self { file: unnamed_file(directory)?, base, ring_bytes })
    }

    /// Writes bytes that follow the previous ones. False when they would overwrite a byte at or after `needed_from`.
    pub fn write(&mut self, offset: u64, bytes: &[u8], needed_from: u64) -> io::Result<bool> {
        if offset + bytes.len() as u64 > needed_from + self.ring_bytes {
            return Ok(false);
        }
        let (first, position) = self.split(offset, bytes.len());
        self.file.write_all_at(&bytes[..first], position)?;
        self.file.write_all_at(&bytes[first..], 0)?;
        Ok(true)
    }

    /// How many of `size` bytes lie before the ring's end, and their position in the file.
    fn split(&self, offset: u64, size: usize) -> (usize, u64) {
        let position = (offset - self.base) % self.ring_bytes;
        (size.min((self.ring_bytes - position) as usize), position)
    }

    pub fn read(&self, offset: u64, size: usize) -> io::Result<Vec<u8>> {
        // One byte more for the newline that ends an attachment.
        let mut bytes = Vec::with_capacity(size + 1);
        bytes.resize(size, 0);
        let (first, position) = self.split(offset, size);
        self.file.read_exact_at(&mut bytes[..first], position)?;
        self.file.read_exact_at(&mut bytes[first..], 0)?;
        Ok(bytes)
    }
}

/// Without a name, so that the kernel frees it however the agent ends.
fn unnamed_file(directory: &Path) -> io::Result<File> {
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
