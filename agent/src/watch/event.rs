//! One line of a watch.

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Ready,
    Create,
    Write,
    Remove,
    Rename,
    Chmod,
    /// Events were lost: the caller must list the tree again.
    Overflow,
}

/// Paths are relative to the watched path, and empty for that path itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    pub kind: Kind,
    path: Path,
    /// The new path of a rename.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Path>,
}

impl Event {
    pub fn new(kind: Kind, path: Vec<u8>) -> Self {
        Self { kind, path: Path(path), to: None }
    }

    /// An event of the watched path itself.
    pub fn of_top(kind: Kind) -> Self {
        Self::new(kind, Vec::new())
    }

    pub fn rename(path: Vec<u8>, to: Vec<u8>) -> Self {
        Self { to: Some(Path(to)), ..Self::new(Kind::Rename, path) }
    }

    pub fn path_bytes(&self) -> usize {
        self.path.0.len() + self.to.as_ref().map_or(0, |to| to.0.len())
    }
}

/// Bytes that are not UTF-8 become U+FFFD, because JSON is text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Path(Vec<u8>);

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(&self.0))
    }
}
