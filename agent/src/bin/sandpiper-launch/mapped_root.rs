//! A mount of an image in which the owners of files are ids that only one sandbox has.
//!
//! The mount is in a mount namespace of this process and its children, so it disappears with them.

use crate::image_copy::{MAX_MIB, mount_copy};
use sandpiper_agent::os::{check, own};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

// Constants of the kernel that the libc crate does not have for this target.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const NO_SET_UID: u64 = 0x02;
const NO_DEVICES: u64 = 0x04;
const ID_MAP: u64 = 0x0010_0000;

pub struct MappedRoot {
    pub image: OsString,
    pub mount_point: OsString,
    /// The content of `uid_map` and `gid_map` of a user namespace: ids of the image's files, and those of the mount.
    pub id_map: OsString,
}

impl MappedRoot {
    pub fn mount(&self) -> io::Result<()> {
        // SAFETY: gives this process, which has one thread, a mount namespace of its own.
        check(unsafe { libc::unshare(libc::CLONE_NEWNS) }).map_err(on("creating a mount namespace"))?;
        keep_mounts_private()?;
        let user_namespace = user_namespace(&self.id_map).map_err(on("creating a user namespace"))?;
        std::fs::create_dir_all(Path::new(&self.mount_point)).map_err(on("creating the mount point"))?;
        match clone_tree(&self.image).and_then(|tree| map_ids(&tree, &user_namespace).map(|()| tree)) {
            Ok(tree) => move_tree(&tree, &self.mount_point).map_err(on("mounting the image")),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => self.mount_copy(),
            Err(error) => Err(on(&format!("mapping the owners of the files in {}", self.image.display()))(error)),
        }
    }

    fn mount_copy(&self) -> io::Result<()> {
        let image = self.image.display();
        mount_copy(&self.image, &self.mount_point, &self.id_map).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => io::Error::other(format!(
                "{image} has more than {MAX_MIB} MiB or too many files for a copy, and its file system does not support \
                 id-mapped mounts: move it to ext4, xfs or btrfs, on Linux 5.12 or newer"
            )),
            _ => on(&format!("copying {image}"))(error),
        })
    }
}

/// Mounts of the host still propagate into the namespace, and none of it propagates out.
fn keep_mounts_private() -> io::Result<()> {
    let flags = libc::MS_SLAVE | libc::MS_REC;
    // SAFETY: the strings are NUL-terminated, and the kernel ignores the arguments that are null.
    let outcome = unsafe { libc::mount(c"".as_ptr(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null()) };
    check(outcome).map(drop).map_err(on("making the mounts private"))
}

/// A namespace without processes, which only holds a mapping.
fn user_namespace(id_map: &OsStr) -> io::Result<OwnedFd> {
    let (mut here, there) = UnixStream::pair()?;
    // SAFETY: this process has one thread.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        drop(here);
        hold_user_namespace(there);
    }
    drop(there);
    let namespace = receive_user_namespace(&mut here, child, id_map);
    drop(here);
    // SAFETY: the child ends when the stream is closed; no status is written.
    check(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) })?;
    namespace
}

/// Ends with the parent, which closes its end of the stream.
fn hold_user_namespace(mut stream: UnixStream) -> ! {
    // SAFETY: changes only this process.
    let is_ready = unsafe { libc::unshare(libc::CLONE_NEWUSER) } == 0;
    if is_ready && stream.write_all(&[1]).is_ok() {
        let _ = stream.read(&mut [0]);
    }
    // SAFETY: ends the process without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

fn receive_user_namespace(stream: &mut UnixStream, child: libc::pid_t, id_map: &OsStr) -> io::Result<OwnedFd> {
    stream.read_exact(&mut [0]).map_err(|_| io::Error::other("the kernel refuses one"))?;
    for name in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{child}/{name}"), id_map.as_bytes())?;
    }
    Ok(std::fs::File::open(format!("/proc/{child}/ns/user"))?.into())
}

/// Without the mounts below the directory, which the image does not include.
fn clone_tree(image: &OsStr) -> io::Result<OwnedFd> {
    let image = CString::new(image.as_bytes())?;
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as libc::c_uint;
    // SAFETY: the path is NUL-terminated and outlives the call; the kernel returns a new descriptor.
    unsafe { own(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, image.as_ptr(), flags) as libc::c_int) }
}

fn map_ids(tree: &OwnedFd, user_namespace: &OwnedFd) -> io::Result<()> {
    let attributes = MountAttributes {
        set: ID_MAP | NO_SET_UID | NO_DEVICES,
        clear: 0,
        propagation: 0,
        user_namespace: user_namespace.as_raw_fd() as u64,
    };
    // SAFETY: both descriptors are open, and the structure has the size that is passed.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            EMPTY.as_ptr(),
            libc::AT_EMPTY_PATH,
            &attributes,
            size_of::<MountAttributes>(),
        )
    };
    check(outcome).map(drop)
}

fn move_tree(tree: &OwnedFd, mount_point: &OsStr) -> io::Result<()> {
    let mount_point = CString::new(mount_point.as_bytes())?;
    // SAFETY: the descriptor is open, and the paths are NUL-terminated and outlive the call.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            EMPTY.as_ptr(),
            libc::AT_FDCWD,
            mount_point.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check(outcome).map(drop)
}

const EMPTY: &CStr = c"";

fn on(action: &str) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::other(format!("{action}: {error}"))
}
