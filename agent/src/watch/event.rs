//! One line of a watch.

use serde::{Serialize, Serializer};

/// Paths are relative to what is watched, and empty for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    Ready {
        path: Path,
    },
    Create {
        path: Path,
    },
    Write {
        path: Path,
    },
    Remove {
        path: Path,
    },
    Rename {
        path: Path,
        to: Path,
    },
    Chmod {
        path: Path,
    },
    /// Events were lost: the caller has to look for itself.
    Overflow {
        path: Path,
    },
}

impl Event {
    pub fn ready() -> Self {
        Self::Ready { path: Path::default() }
    }

    pub fn overflow() -> Self {
        Self::Overflow { path: Path::default() }
    }

    /// What it takes in memory beside a fixed part.
    pub fn path_bytes(&self) -> usize {
        match self {
            Self::Rename { path, to } => path.0.len() + to.0.len(),
            Self::Ready { path }
            | Self::Create { path }
            | Self::Write { path }
            | Self::Remove { path }
            | Self::Chmod { path }
            | Self::Overflow { path } => path.0.len(),
        }
    }
}

/// Names are bytes and JSON is text: bytes that are not UTF-8 come out as U+FFFD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(pub Vec<u8>);

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(&self.0))
    }
}
