//! Adds entropy, because copies of a machine would otherwise produce the same random numbers.

use crate::os::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

const MAX_BYTES: usize = 256;

/// `struct rand_pool_info` of the kernel.
#[repr(C)]
struct Pool {
    entropy_count: libc::c_int,
    size: libc::c_int,
    bytes: [u8; MAX_BYTES],
}

const RNDADDENTROPY: libc::Ioctl = 0x4008_5203u32 as libc::Ioctl;
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// Opened once, at quiesce, to save time at wake-up.
pub fn device() -> io::Result<&'static File> {
    static DEVICE: OnceLock<File> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device);
    }
    let device = File::options().write(true).open("/dev/urandom")?;
    Ok(DEVICE.get_or_init(|| device))
}

/// Adds the seed and reseeds the generator at once. The kernel alone would do that some minutes later.
pub fn add(seed: &[u8]) -> io::Result<()> {
    let size = seed.len().min(MAX_BYTES);
    let mut pool = Pool { entropy_count: size as libc::c_int * 8, size: size as libc::c_int, bytes: [0; MAX_BYTES] };
    pool.bytes[..size].copy_from_slice(&seed[..size]);
    let random = device()?;
    // SAFETY: the kernel reads as many bytes as the structure says; the other call takes no argument.
    unsafe {
        check(libc::ioctl(random.as_raw_fd(), RNDADDENTROPY, &pool))?;
        check(libc::ioctl(random.as_raw_fd(), RNDRESEEDCRNG)).map(drop)
    }
}
