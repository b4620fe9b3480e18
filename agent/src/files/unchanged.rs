//! Whether a file is still the one that was read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Coarser than any file system's clock.
const SETTLED_AFTER_SECONDS: i64 = 2;

/// Equal stamps of a settled file mean equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(Option<Identity>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed_at: (i64, i64),
}

impl Stamp {
    pub fn of(path: impl AsRef<Path>) -> Self {
        Self(std::fs::metadata(path).ok().map(|found| Identity {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed_at: (found.ctime(), found.ctime_nsec()),
        }))
    }

    /// A file that has just changed may change again within one tick of its clock, and would then look the same.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        self.0.is_none_or(|file| (SETTLED_AFTER_SECONDS..).contains(&(now - file.changed_at.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_just_been_written_is_not_settled() {
        let path = std::env::temp_dir().join(format!("sandpiper-unchanged-{}", std::process::id()));
        assert_eq!(Stamp::of(&path), Stamp(None));
        std::fs::write(&path, "a").unwrap();
        let first = Stamp::of(&path);
        assert!(!first.is_settled());
        std::fs::write(&path, "ab").unwrap();
        assert_ne!(Stamp::of(&path), first);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_old_file_is_settled_and_one_from_the_future_is_not() {
        let at = |seconds| Stamp(Some(Identity { device: 1, inode: 1, size: 1, changed_at: (seconds, 0) }));
        assert!(at(0).is_settled());
        assert!(!at(i64::from(u32::MAX) * 2).is_settled());
    }
}
