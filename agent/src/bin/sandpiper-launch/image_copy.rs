//! A copy of an image in memory with other owners, for file systems and kernels without id-mapped mounts.

use sandpiper_agent::os::check;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};

/// The kernel enforces both limits. The first is `MAX_MIB`.
const LIMITS: &CStr = c"size=64m,nr_inodes=16384";
pub const MAX_MIB: u32 = 64;

/// The owner that an id-mapped mount shows for an id without a mapping.
const UNMAPPED: u32 = 65534;

/// Without the set-uid and set-gid bits of programs. The set-gid bit of a directory sets the group of new files.
const KEPT_MODE_OF_FILE: u32 = 0o1777;
const KEPT_MODE_OF_DIRECTORY: u32 = 0o3777;

/// Mounts the copy. An image above the limits leads to `ErrorKind::StorageFull`.
pub fn mount_copy(image: &OsStr, mount_point: &OsStr, id_map: &OsStr) -> io::Result<()> {
    let ids = IdMap::parse(id_map)?;
    let source = open_without_submounts(image, mount_point)?;
    let target = CString::new(mount_point.as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: the strings are NUL-terminated and outlive the call.
    check(unsafe {
        libc::mount(c"image".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), flags, LIMITS.as_ptr().cast())
    })?;
    ids.copy_directory(&source, Path::new(mount_point))
}

/// The mount point holds the image only until the directory is open.
fn open_without_submounts(image: &OsStr, mount_point: &OsStr) -> io::Result<File> {
    let (source, target) = (CString::new(image.as_bytes())?, CString::new(mount_point.as_bytes())?);
    let none = std::ptr::null();
    // SAFETY: the paths are NUL-terminated and outlive the call, which ignores the arguments that are null.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), none, libc::MS_BIND, none.cast()) })?;
    let directory = File::open(mount_point);
    // SAFETY: the path is NUL-terminated and outlives the call.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })?;
    directory
}

struct IdRange {
    first_in_image: u32,
    first_in_copy: u32,
    count: u32,
}

struct IdMap(Vec<IdRange>);

impl IdMap {
    fn parse(text: &OsStr) -> io::Result<Self> {
        let range = |line: &str| {
            let numbers: Vec<u32> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
            let [first_in_image, first_in_copy, count] = numbers[..] else { return None };
            Some(IdRange { first_in_image, first_in_copy, count })
        };
        let ranges = text.to_str().and_then(|text| text.lines().map(range).collect());
        ranges.map(Self).ok_or_else(|| io::Error::other(format!("{} is not an id map", text.display())))
    }

    fn find(&self, id: u32) -> u32 {
        let shift = |range: &IdRange| {
            let offset = id.checked_sub(range.first_in_image).filter(|offset| *offset < range.count)?;
            range.first_in_copy.checked_add(offset)
        };
        self.0.iter().find_map(shift).unwrap_or(UNMAPPED)
    }

    /// Opens each entry below its open directory and follows no link, so a change of the image leads to no other file.
    fn copy_directory(&self, source: &File, target: &Path) -> io::Result<()> {
        let directory = PathBuf::from(format!("/proc/self/fd/{}", source.as_raw_fd()));
        for entry in fs::read_dir(&directory)? {
            let name = entry?.file_name();
            self.copy_entry(&directory.join(&name), &target.join(&name))?;
        }
        self.copy_attributes(&source.metadata()?, &File::open(target)?)
    }

    /// Skips devices, sockets and FIFOs.
    fn copy_entry(&self, source: &Path, target: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(source)?;
        if metadata.is_symlink() {
            symlink(fs::read_link(source)?, target)?;
            lchown(target, Some(self.find(metadata.uid())), Some(self.find(metadata.gid())))
        } else if metadata.is_dir() {
            fs::create_dir(target)?;
            self.copy_directory(&open_entry(source, libc::O_DIRECTORY)?, target)
        } else if metadata.is_file() {
            let mut from = open_entry(source, libc::O_NONBLOCK)?;
            let mut to = File::create_new(target)?;
            io::copy(&mut from, &mut to)?;
            self.copy_attributes(&from.metadata()?, &to)
        } else {
            Ok(())
        }
    }

    fn copy_attributes(&self, from: &Metadata, to: &File) -> io::Result<()> {
        fchown(to, Some(self.find(from.uid())), Some(self.find(from.gid())))?;
        let kept_mode = if from.is_dir() { KEPT_MODE_OF_DIRECTORY } else { KEPT_MODE_OF_FILE };
        to.set_permissions(Permissions::from_mode(from.mode() & kept_mode))?;
        to.set_times(FileTimes::new().set_modified(from.modified()?))
    }
}

fn open_entry(path: &Path, flags: libc::c_int) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NOFOLLOW | flags).open(path)
}
