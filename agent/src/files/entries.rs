//! Reads the entries of an open directory, one buffer at a time.

use super::dir::Dir;
use crate::os::check;
use std::ffi::CStr;
use std::io;

const BUFFER_BYTES: usize = 32 * 1024;
/// Offsets of `struct linux_dirent64`.
const RECORD_LENGTH_AT: usize = 16;
const TYPE_AT: usize = 18;
const NAME_AT: usize = 19;

pub struct Entries<'a> {
    dir: &'a Dir,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
}

impl<'a> Entries<'a> {
    /// Starts at the directory's first entry.
    pub fn of(dir: &'a Dir) -> io::Result<Self> {
        // SAFETY: moves the position of an open descriptor.
        check(unsafe { libc::lseek(dir.raw(), 0, libc::SEEK_SET) })?;
        Ok(Self { dir, buffer: vec![0; BUFFER_BYTES], at: 0, filled: 0 })
    }

    /// The next name with its `DT_` type, without `.` and `..`; None after the last.
    pub fn read(&mut self) -> io::Result<Option<(&CStr, u8)>> {
        loop {
            if self.at == self.filled && !self.fill()? {
                return Ok(None);
            }
            let start = self.at;
            let record = &self.buffer[start..self.filled];
            self.at += u16::from_ne_bytes([record[RECORD_LENGTH_AT], record[RECORD_LENGTH_AT + 1]]) as usize;
            let name = CStr::from_bytes_until_nul(&record[NAME_AT..]).map_err(io::Error::other)?;
            if name != c"." && name != c".." {
                let kind = record[TYPE_AT];
                // The borrow checker does not accept a returned borrow from a loop, so this parses the name again.
                let name = CStr::from_bytes_until_nul(&self.buffer[start + NAME_AT..]).map_err(io::Error::other)?;
                return Ok(Some((name, kind)));
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        // SAFETY: the buffer is writable for its length.
        let size =
            unsafe { libc::syscall(libc::SYS_getdents64, self.dir.raw(), self.buffer.as_mut_ptr(), self.buffer.len()) };
        self.at = 0;
        self.filled = check(size)? as usize;
        Ok(size > 0)
    }
}
