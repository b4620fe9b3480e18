//! Takes on the identity of a process for a moment, to look at its descriptors.

/// Runs `work` with the real and filesystem ids of a user. Without CAP_SYS_PTRACE, the kernel shows the descriptors of a
/// process only to its own user: Linux compares the filesystem ids, gVisor the real ones. The effective ids stay, so no
/// process can trace the agent meanwhile; all signals are blocked, and none from inside ends PID 1.
pub fn with_ids_of<T>(uid: u32, gid: u32, work: impl FnOnce() -> T) -> T {
    const UNCHANGED: u32 = u32::MAX;
    // SAFETY: plain system calls without memory, which change only this thread.
    let set = |uid: u32, gid: u32| unsafe {
        libc::syscall(libc::SYS_setresgid, gid, UNCHANGED, UNCHANGED);
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setresuid, uid, UNCHANGED, UNCHANGED);
        libc::syscall(libc::SYS_setfsuid, uid);
    };
    // SAFETY: the calls only read the ids of this thread.
    let (own_uid, own_gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    set(uid, gid);
    let outcome = work();
    set(own_uid, own_gid);
    outcome
}
