//! Reads a system file that the code inside may have replaced.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Real files are smaller. A longer file is cut, so that it cannot fill the agent's memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// Never blocks, also when a FIFO or device has taken the file's place.
pub fn read_small_file(path: impl AsRef<Path>) -> io::Result<String> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
