//! The root filesystem: a read-only image that machines share, with the machine's own disk as an overlay.

use super::filesystems::{KERNEL, mount};
use super::{block, modules};
use std::fs;
use std::io;
use std::os::unix::fs::chroot;

/// The serial numbers of the first and the second disk.
const BASE: &str = "base";
const DISK: &str = "disk";

const BASE_AT: &str = "/base";
const DISK_AT: &str = "/disk";
const ROOT_AT: &str = "/root";

/// Without an image the initramfs stays the root, which is enough for a check of the host.
pub fn enter() -> io::Result<()> {
    let Some(base) = block::find(BASE, 0) else { return Ok(()) };
    let disk = block::find(DISK, 1).ok_or_else(|| io::Error::other("the machine has no writable disk"))?;
    mount(&base, BASE_AT, "ext4", libc::MS_RDONLY | libc::MS_NOATIME, "")?;
    // Crash safety is not needed: nothing reads this disk after the machine ends, unless the whole machine was saved.
    mount(&disk, DISK_AT, "ext4", libc::MS_NOATIME, "")?;
    let [upper, work] = ["upper", "work"].map(|name| format!("{DISK_AT}/{name}"));
    for directory in [&upper, &work] {
        fs::create_dir_all(directory)?;
    }
    // The root of an overlay has the mode of its upper directory.
    fs::set_permissions(&upper, fs::metadata(BASE_AT)?.permissions())?;
    let options = format!("lowerdir={BASE_AT},upperdir={upper},workdir={work}");
    mount("overlay", ROOT_AT, "overlay", libc::MS_NOATIME, &options)?;
    switch()
}

/// An initramfs cannot be unmounted. So this removes its files, which take up memory, and moves the new root over it.
fn switch() -> io::Result<()> {
    for path in KERNEL {
        mount(path, &format!("{ROOT_AT}{path}"), "", libc::MS_MOVE, "")?;
    }
    let _ = fs::remove_dir_all(modules::DIRECTORY);
    let _ = fs::remove_file("/init");
    std::env::set_current_dir(ROOT_AT)?;
    mount(".", "/", "", libc::MS_MOVE, "")?;
    chroot(".")?;
    std::env::set_current_dir("/")
}
