//! The directory of each watch.

use crate::files::temp_entry::is_temp_name;
use crate::files::walk::join;
use std::collections::HashMap;

/// Paths are relative to the top, whose own path is empty.
#[derive(Debug, Default)]
pub struct Directories(HashMap<i32, Vec<u8>>);

impl Directories {
    /// False when the watch already has this path. Ignores the agent's temporary directories, so that a watch does not
    /// report their contents.
    pub fn insert(&mut self, watch: i32, path: &[u8]) -> bool {
        let is_temporary = path.split(|byte| *byte == b'/').any(is_temp_name);
        !is_temporary && self.0.insert(watch, path.to_vec()).is_none_or(|before| before != path)
    }

    pub fn remove(&mut self, watch: i32) {
        self.0.remove(&watch);
    }

    /// The path of an entry; None when the directory is not watched.
    pub fn path_of(&self, watch: i32, name: &[u8]) -> Option<Vec<u8>> {
        self.0.get(&watch).map(|dir| join(dir, name))
    }

    /// Changes the path of a directory and of everything below it.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) {
        for path in self.0.values_mut() {
            if is_within(path, from) {
                *path = [to, &path[from.len()..]].concat();
            }
        }
    }

    /// Removes a directory and everything below it. Returns their watches.
    pub fn remove_tree(&mut self, top: &[u8]) -> Vec<i32> {
        self.0.extract_if(|_, path| is_within(path, top)).map(|(watch, _)| watch).collect()
    }

    pub fn watches(&self) -> impl Iterator<Item = i32> + '_ {
        self.0.keys().copied()
    }

    pub fn contains(&self, watch: i32) -> bool {
        self.0.contains_key(&watch)
    }
}

fn is_within(path: &[u8], top: &[u8]) -> bool {
    path.strip_prefix(top).is_some_and(|rest| top.is_empty() || rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Directories {
        let mut directories = Directories::default();
        for (watch, path) in [(1, ""), (2, "a"), (3, "a/b"), (4, "ab")] {
            assert!(directories.insert(watch, path.as_bytes()));
        }
        directories
    }

    #[test]
    fn renames_a_directory_with_everything_below_it_and_nothing_else() {
        let mut directories = three();
        directories.rename(b"a", b"x/y");
        let path = |watch| String::from_utf8(directories.path_of(watch, b"f").unwrap()).unwrap();
        assert_eq!([path(1), path(2), path(3), path(4)], ["f", "x/y/f", "x/y/b/f", "ab/f"]);
    }

    #[test]
    fn returns_the_watches_of_a_removed_tree() {
        let mut directories = three();
        let mut watches = directories.remove_tree(b"a");
        watches.sort_unstable();
        assert_eq!(watches, [2, 3]);
        assert_eq!(directories.path_of(3, b"f"), None);
    }

    #[test]
    fn ignores_temporary_directories_of_the_agent() {
        let mut directories = Directories::default();
        assert!(!directories.insert(5, b"a/.sandpiper-0123456789abcdef/b"));
        assert_eq!(directories.path_of(5, b"f"), None);
        assert!(directories.insert(6, b"a/.sandpiper-notes"));
    }
}
