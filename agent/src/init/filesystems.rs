//! Mounts the kernel's filesystems and those in memory.

use crate::os::check;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const HARMLESS: u64 = libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_NODEV;

/// `root` moves them into the real root.
pub const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

pub fn mount_kernel() -> io::Result<()> {
    mount_at("devtmpfs", "/dev", "devtmpfs", libc::MS_NOSUID, "mode=0755")?;
    mount_at("proc", "/proc", "proc", HARMLESS, "")?;
    mount_at("sysfs", "/sys", "sysfs", HARMLESS, "")
}

pub fn mount_rest() -> io::Result<()> {
    mount_at("devpts", "/dev/pts", "devpts", libc::MS_NOSUID | libc::MS_NOEXEC, "mode=0620,gid=5,ptmxmode=0666")?;
    mount_at("tmpfs", "/dev/shm", "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=1777")?;
    mount_at("tmpfs", "/run", "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=0755,size=16m")?;
    fs::create_dir_all("/run/lock")?;
    fs::set_permissions("/run/lock", fs::Permissions::from_mode(0o1777))?;
    for (name, target) in [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        match symlink(target, Path::new("/dev").join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn mount_at(source: &str, target: &str, kind: &str, flags: u64, options: &str) -> io::Result<()> {
    fs::create_dir_all(target)?;
    mount(Path::new(source), Path::new(target), kind, flags, options)
}

pub fn mount(source: &Path, target: &Path, kind: &str, flags: u64, options: &str) -> io::Result<()> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let (source_text, target_text) = (text(source.as_os_str().as_bytes())?, text(target.as_os_str().as_bytes())?);
    let (kind_text, options) = (text(kind.as_bytes())?, text(options.as_bytes())?);
    // SAFETY: all strings are NUL-terminated and outlive the call.
    let outcome = unsafe {
        libc::mount(source_text.as_ptr(), target_text.as_ptr(), kind_text.as_ptr(), flags, options.as_ptr().cast())
    };
    check(outcome).map(drop).map_err(|error| {
        let message = format!("cannot mount {} at {}: {error}", source.display(), target.display());
        io::Error::new(error.kind(), message)
    })
}
