//! The names of one directory in byte order, in batches of bounded size however many there are.

use super::dir::Dir;
use super::entries::Entries;
use super::pace::Pace;
use super::stat::Kind;
use std::ffi::CStr;
use std::io;

/// What a name costs in memory beside its bytes, about.
const OVERHEAD_BYTES: usize = 48;

pub struct Batch {
    /// A name, or for a directory's contents its name and a slash: sorted together they give whole paths in byte
    /// order, where `a.txt` stands between `a` and `a/b`.
    pub keys: Vec<Vec<u8>>,
    /// False when the directory has more after the last key.
    pub complete: bool,
}

/// The smallest keys greater than `after`, up to about `budget_bytes`. Each batch reads the directory from its start,
/// so entries that come and go meanwhile never repeat or hide others.
pub async fn batch_after(
    dir: &Dir,
    after: &[u8],
    budget_bytes: usize,
    with_contents: bool,
    pace: &mut Pace,
) -> io::Result<Batch> {
    let mut smallest = Smallest { keys: Vec::new(), bytes: 0, budget_bytes, complete: true };
    let mut entries = Entries::of(dir)?;
    while let Some((name, kind)) = entries.next()? {
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
        pace.step().await;
    }
    smallest.keys.sort_unstable();
    Ok(Batch { keys: smallest.keys, complete: smallest.complete })
}

struct Smallest {
    keys: Vec<Vec<u8>>,
    bytes: usize,
    budget_bytes: usize,
    complete: bool,
}

impl Smallest {
    fn add(&mut self, key: Vec<u8>) {
        self.bytes += key.len() + OVERHEAD_BYTES;
        self.keys.push(key);
        if self.bytes > 2 * self.budget_bytes {
            self.keys.sort_unstable();
            while self.bytes > self.budget_bytes && self.keys.len() > 1 {
                let dropped = self.keys.pop().map_or(0, |key| key.len() + OVERHEAD_BYTES);
                self.bytes -= dropped;
                self.complete = false;
            }
        }
    }
}

/// An entry that vanished meanwhile is none.
fn is_directory(dir: &Dir, name: &CStr, kind: u8) -> bool {
    match kind {
        libc::DT_DIR => true,
        libc::DT_UNKNOWN => dir.stat_entry(name).is_ok_and(|stat| stat.kind() == Kind::Directory),
        _ => false,
    }
}
