//! Reads a file without trusting its size: files in /proc report 0 and have contents.

use super::atomic_write::not_a_file;
use super::dir::{stat_fd, stat_path};
use super::sandbox_path::SandboxPath;
use super::stat::{Kind, Stat};
use crate::error::{AgentError, Result};
use crate::os::read_into;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

#[derive(Debug)]
pub struct FileReader {
    path: SandboxPath,
    file: File,
}

impl FileReader {
    pub fn open(path: SandboxPath, offset: u64) -> Result<Self> {
        let failed = path.failed("read");
        // Checked before the open, which has side effects on some devices.
        check_kind(&path, &stat_path(path.as_path(), true).map_err(&failed)?)?;
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let mut file = File::options().read(true).custom_flags(flags).open(path.as_path()).map_err(&failed)?;
        check_kind(&path, &stat_fd(file.as_fd()).map_err(&failed)?)?;
        if offset > 0 {
            if offset > i64::MAX as u64 {
                return Err(AgentError::invalid("bad_params", format!("offset {offset} is beyond the largest file")));
            }
            file.seek(SeekFrom::Start(offset)).map_err(&failed)?;
        }
        drop(failed);
        Ok(Self { path, file })
    }

    /// Reads at most `most` bytes; none at the end.
    pub fn read(&mut self, most: usize) -> Result<Vec<u8>> {
        // One byte more for the newline that ends an attachment.
        let mut bytes: Vec<u8> = Vec::with_capacity(most + 1);
        match read_into(self.file.as_raw_fd(), &mut bytes, most) {
            // A kernel log without new messages.
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
            outcome => drop(outcome.map_err(self.path.failed("read"))?),
        }
        // The bytes may wait in a queue, where they must not hold unused memory.
        if bytes.len() < most / 2 {
            bytes.shrink_to(bytes.len() + 1);
        }
        Ok(bytes)
    }
}

fn check_kind(path: &SandboxPath, stat: &Stat) -> Result<()> {
    match stat.kind() {
        Kind::File => Ok(()),
        Kind::Directory => Err(path.failed("read")(io::Error::from_raw_os_error(libc::EISDIR))),
        _ => Err(not_a_file("read", path)),
    }
}
