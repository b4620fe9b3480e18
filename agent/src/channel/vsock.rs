//! A vsock port, for VMs: the host connects to it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub fn listen(port: u32) -> io::Result<OwnedFd> {
    // SAFETY: socket calls with a correctly sized, zeroed address.
    unsafe {
        let fd = libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_vm = std::mem::zeroed();
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        address.svm_cid = libc::VMADDR_CID_ANY;
        address.svm_port = port;
        let size = size_of::<libc::sockaddr_vm>() as libc::socklen_t;
        if libc::bind(fd, (&raw const address).cast(), size) < 0 || libc::listen(fd, 16) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }
}
