//! How the agent's memory is taken from the system and given back.
//!
//! A stream takes and frees buffers of up to a mebibyte thousands of times a second. Giving each back at once would
//! make the kernel clear its pages anew every time, which under gVisor costs more than carrying the bytes. So freed
//! memory is kept while streams run, and given back when they have been done for a moment.

use std::cell::Cell;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// Freed memory kept at most.
const KEPT_BYTES: i32 = 4 * 1024 * 1024;
/// Every buffer is smaller, and comes from what is kept.
const MAPPED_BYTES: i32 = 2 * 1024 * 1024;
const MOMENT: Duration = Duration::from_secs(1);

pub fn keep_freed() {
    // SAFETY: only sets numbers of the allocator.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}

/// Gives freed memory back in a moment; to be called when a stream ends.
pub fn give_back_soon() {
    thread_local!(static IS_DUE: Cell<bool> = const { Cell::new(false) });
    if IS_DUE.replace(true) {
        return;
    }
    spawn_local(async {
        sleep(MOMENT).await;
        IS_DUE.set(false);
        // SAFETY: only frees pages that the allocator does not use.
        unsafe { libc::malloc_trim(0) };
    });
}
