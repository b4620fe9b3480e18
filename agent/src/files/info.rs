//! The description of an entry for callers.

use super::dir::{Dir, stat_path};
use super::stat::{Kind, Stat};
use serde::Serialize;
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a name that are not UTF-8 become U+FFFD, because JSON is text. A caller sees such an entry but cannot name it.
#[derive(Debug, Serialize)]
pub struct FileInfo {
    pub path: String,
    pub kind: Kind,
    pub size: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub modified_at_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl FileInfo {
    pub fn at(path: &Path, follow: bool) -> io::Result<Self> {
        let stat = stat_path(path, follow)?;
        let target = match stat.kind() {
            Kind::Symlink => std::fs::read_link(path).ok().map(|target| target.as_os_str().as_bytes().to_vec()),
            _ => None,
        };
        Ok(Self::new(path.as_os_str().as_bytes(), &stat, target))
    }

    /// Describes an entry of an open directory under the path that a listing shows.
    pub fn of_entry(dir: &Dir, name: &CStr, shown_path: &[u8]) -> io::Result<Self> {
        let stat = dir.stat_entry(name)?;
        // Some links in /proc exist but cannot be read.
        let target = if stat.kind() == Kind::Symlink { dir.read_link(name).ok() } else { None };
        Ok(Self::new(shown_path, &stat, target))
    }

    fn new(path: &[u8], stat: &Stat, target: Option<Vec<u8>>) -> Self {
        Self {
            path: String::from_utf8_lossy(path).into_owned(),
            kind: stat.kind(),
            size: stat.size(),
            mode: stat.mode(),
            uid: stat.uid(),
            gid: stat.gid(),
            modified_at_ms: stat.modified_at_ms(),
            target: target.map(|target| String::from_utf8_lossy(&target).into_owned()),
        }
    }
}
