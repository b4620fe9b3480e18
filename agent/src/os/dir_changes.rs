//! Detects changes in a directory with one system call, where checking each file takes many.

use super::inotify;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

/// Does not see writes through a memory mapping or through another hard link.
#[derive(Debug)]
pub struct DirChanges(OwnedFd);

impl DirChanges {
    pub fn watch(dir: &CStr) -> io::Result<Self> {
        let fd = inotify::open()?;
        inotify::add(&fd, dir, inotify::CHANGES)?;
        Ok(Self(fd))
    }

    /// After it has returned true, watch again: the directory itself may be gone.
    pub fn any(&self) -> bool {
        !matches!(inotify::read(&self.0), Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::path::{Path, PathBuf};

    struct Watched {
        dir: PathBuf,
    }

    impl Watched {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("sandpiper-changes-{name}-{}", std::process::id()));
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("file"), "1").unwrap();
            Self { dir }
        }

        fn notices(&self, change: impl FnOnce(&Path)) -> bool {
            let changes = DirChanges::watch(&CString::new(self.dir.to_str().unwrap()).unwrap()).unwrap();
            assert!(!changes.any());
            change(&self.dir);
            changes.any()
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }

    #[test]
    fn sees_writes_creations_renames_and_removals_but_not_reads() {
        let watched = Watched::new("file");
        assert!(!watched.notices(|dir| drop(fs::read(dir.join("file")).unwrap())));
        assert!(watched.notices(|dir| fs::write(dir.join("file"), "2").unwrap()));
        assert!(watched.notices(|dir| fs::write(dir.join("new"), "3").unwrap()));
        assert!(watched.notices(|dir| fs::rename(dir.join("new"), dir.join("file")).unwrap()));
        assert!(watched.notices(|dir| fs::remove_file(dir.join("file")).unwrap()));
    }

    #[test]
    fn sees_the_removal_of_the_directory_itself() {
        let watched = Watched::new("dir");
        assert!(watched.notices(|dir| fs::remove_dir_all(dir).unwrap()));
    }

    #[test]
    fn refuses_to_watch_a_missing_directory() {
        assert!(DirChanges::watch(c"/no/such/directory").is_err());
    }
}
