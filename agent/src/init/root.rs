//! The root filesystem: an image that many machines share and none can write to, and over it the machine's own disk.

use super::block;
use super::filesystems::{KERNEL, mount};
use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::Path;

/// Serial numbers of the two disks, the first and the second.
const BASE: &str = "base";
const DISK: &str = "disk";

const BASE_AT: &str = "/base";
const DISK_AT: &str = "/disk";
const ROOT_AT: &str = "/root";

/// Without an image the initramfs stays the root: enough to answer, which is all that a look at the host needs.
pub fn enter() -> io::Result<()> {
    let Some(base) = block::find(BASE, 0) else { return Ok(()) };
    let disk = block::find(DISK, 1).ok_or_else(|| io::Error::other("there is no disk to write to"))?;
    mount_new(&base, BASE_AT, libc::MS_RDONLY | libc::MS_NOATIME)?;
    // Nobody reads this disk after the machine has ended without being saved whole, so there is nothing to be safe for.
    mount_new(&disk, DISK_AT, libc::MS_NOATIME)?;
    let [upper, work] = ["upper", "work"].map(|name| Path::new(DISK_AT).join(name));
    for directory in [&upper, &work, Path::new(ROOT_AT)] {
        fs::create_dir_all(directory)?;
    }
    // The root of an overlay shows the owner and mode of its upper directory.
    copy_mode(Path::new(BASE_AT), &upper)?;
    let options = format!("lowerdir={BASE_AT},upperdir={},workdir={}", upper.display(), work.display());
    mount(Path::new("overlay"), Path::new(ROOT_AT), "overlay", libc::MS_NOATIME, &options)?;
    switch()
}

fn mount_new(device: &Path, target: &str, flags: u64) -> io::Result<()> {
    fs::create_dir_all(target)?;
    mount(device, Path::new(target), "ext4", flags, "")
}

fn copy_mode(from: &Path, to: &Path) -> io::Result<()> {
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

/// An initramfs cannot be unmounted: the new root is moved over it, after its files, which are memory, are gone.
fn switch() -> io::Result<()> {
    for path in KERNEL {
        let target = format!("{ROOT_AT}{path}");
        fs::create_dir_all(&target)?;
        mount(Path::new(path), Path::new(&target), "", libc::MS_MOVE, "")?;
    }
    let _ = fs::remove_dir_all(super::MODULES);
    let _ = fs::remove_file("/init");
    std::env::set_current_dir(ROOT_AT)?;
    mount(Path::new("."), Path::new("/"), "", libc::MS_MOVE, "")?;
    enter_directory(c".")?;
    std::env::set_current_dir("/")
}

fn enter_directory(path: &CStr) -> io::Result<()> {
    // SAFETY: the path is NUL-terminated.
    if unsafe { libc::chroot(path.as_ptr()) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
