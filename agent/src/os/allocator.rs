//! When the allocator returns freed memory to the kernel.
//!
//! A stream allocates and frees buffers of up to 1 MiB thousands of times a second. If each free returned its pages, the
//! kernel would have to clear them again, which under gVisor costs more than copying the bytes. So the allocator keeps
//! freed memory while streams run and returns it shortly after the last one ends.

use std::cell::Cell;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// The most freed memory to keep.
const KEPT_BYTES: i32 = 4 * 1024 * 1024;
/// Every buffer is smaller and so comes from the kept memory.
const MAPPED_BYTES: i32 = 2 * 1024 * 1024;
const TRIM_DELAY: Duration = Duration::from_secs(1);

pub fn keep_freed_memory() {
    // SAFETY: only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}

/// Returns freed memory to the kernel after a delay. Call it when a stream ends.
pub fn trim_soon() {
    thread_local!(static IS_DUE: Cell<bool> = const { Cell::new(false) });
    if IS_DUE.replace(true) {
        return;
    }
    spawn_local(async {
        sleep(TRIM_DELAY).await;
        IS_DUE.set(false);
        // SAFETY: only frees pages that the allocator does not use.
        unsafe { libc::malloc_trim(0) };
    });
}
