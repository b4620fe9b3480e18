//! The names of a directory of any size, sorted by bytes, in batches of bounded size.

use super::dir::Dir;
use super::entries::Entries;
use super::stat::Kind;
use super::time_slice::TimeSlice;
use std::ffi::CStr;
use std::io;

/// The approximate memory for a name in addition to its bytes.
const OVERHEAD_BYTES: usize = 48;

pub struct Batch {
    /// A name, or a directory's name with a slash for its contents. Sorted together they give whole paths in byte order,
    /// where `a.txt` comes between `a` and `a/b`.
    pub keys: Vec<Vec<u8>>,
    /// False when the directory has more after the last key.
    pub is_complete: bool,
}

/// The smallest keys greater than `after`, up to about `budget_bytes`. Each batch reads the directory from its start, so
/// concurrent changes never repeat or hide other entries.
pub async fn batch_after(
    dir: &Dir,
    after: &[u8],
    budget_bytes: usize,
    with_contents: bool,
    time_slice: &mut TimeSlice,
) -> io::Result<Batch> {
    let mut smallest = Smallest { keys: Vec::new(), bytes: 0, budget_bytes, left_out: None };
    let mut entries = Entries::of(dir)?;
    while let Some((name, kind)) = entries.read()? {
        let bytes = name.to_bytes();
        if bytes > after {
            smallest.add(bytes.to_vec());
        }
        if with_contents && is_directory(dir, name, kind) {
            let contents = [bytes, b"/"].concat();
            if contents.as_slice() > after {
                smallest.add(contents);
            }
        }
        time_slice.step().await;
    }
    smallest.keys.sort_unstable();
    Ok(Batch { keys: smallest.keys, is_complete: smallest.left_out.is_none() })
}

struct Smallest {
    keys: Vec<Vec<u8>>,
    bytes: usize,
    budget_bytes: usize,
    /// The smallest key left for a later batch.
    left_out: Option<Vec<u8>>,
}

impl Smallest {
    fn add(&mut self, key: Vec<u8>) {
        if self.left_out.as_ref().is_some_and(|left_out| key >= *left_out) {
            return;
        }
        self.bytes += key.len() + OVERHEAD_BYTES;
        self.keys.push(key);
        if self.bytes > 2 * self.budget_bytes {
            self.keys.sort_unstable();
            while self.bytes > self.budget_bytes && self.keys.len() > 1 {
                self.left_out = self.keys.pop();
                self.bytes -= self.left_out.as_ref().map_or(0, |key| key.len() + OVERHEAD_BYTES);
            }
        }
    }
}

/// False for an entry that has just been removed.
fn is_directory(dir: &Dir, name: &CStr, kind: u8) -> bool {
    match kind {
        libc::DT_DIR => true,
        libc::DT_UNKNOWN => dir.stat_entry(name).is_ok_and(|stat| stat.kind() == Kind::Directory),
        _ => false,
    }
}
