//! Mounts the kernel's filesystems and those in memory.

use crate::os::check;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const HARMLESS: u64 = libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_NODEV;

/// `root` moves them into the real root.
pub const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

pub fn mount_kernel() -> io::Result<()> {
    mount("devtmpfs", "/dev", "devtmpfs", libc::MS_NOSUID, "mode=0755")?;
    mount("proc", "/proc", "proc", HARMLESS, "")?;
    mount("sysfs", "/sys", "sysfs", HARMLESS, "")
}

pub fn mount_rest() -> io::Result<()> {
    mount("devpts", "/dev/pts", "devpts", libc::MS_NOSUID | libc::MS_NOEXEC, "mode=0620,gid=5,ptmxmode=0666")?;
    mount("tmpfs", "/dev/shm", "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=1777")?;
    mount("tmpfs", "/run", "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=0755,size=16m")?;
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

/// Creates the target if it is missing.
pub fn mount(source: &str, target: &str, kind: &str, flags: u64, options: &str) -> io::Result<()> {
    fs::create_dir_all(target)?;
    let (source_text, target_text) = (CString::new(source)?, CString::new(target)?);
    let (kind, options) = (CString::new(kind)?, CString::new(options)?);
    // SAFETY: all strings are NUL-terminated and outlive the call.
    let outcome = unsafe {
        libc::mount(source_text.as_ptr(), target_text.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    check(outcome)
        .map(drop)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot mount {source} at {target}: {error}")))
}
