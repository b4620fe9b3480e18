//! Randomness. Copies of a machine would all draw the same random numbers until something tells them apart.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

const MAX_BYTES: usize = 256;

/// As the kernel takes it: how many bits it is worth, how many bytes there are, and the bytes.
#[repr(C)]
struct Pool {
    entropy_count: libc::c_int,
    size: libc::c_int,
    bytes: [u8; MAX_BYTES],
}

const RNDADDENTROPY: libc::Ioctl = 0x4008_5203u32 as libc::Ioctl;
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// Opened once: a machine that wakes up has no time to look for it.
pub fn device() -> io::Result<&'static File> {
    static DEVICE: OnceLock<File> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device);
    }
    let device = File::options().write(true).open("/dev/urandom")?;
    Ok(DEVICE.get_or_init(|| device))
}

/// Mixes the seed in and has the kernel draw from it at once, not at its next turn in some minutes.
pub fn add(seed: &[u8]) -> io::Result<()> {
    let size = seed.len().min(MAX_BYTES);
    let mut pool = Pool { entropy_count: size as libc::c_int * 8, size: size as libc::c_int, bytes: [0; MAX_BYTES] };
    pool.bytes[..size].copy_from_slice(&seed[..size]);
    let random = device()?;
    // SAFETY: the kernel reads as many bytes as the structure says it has; the other call takes nothing.
    unsafe {
        if libc::ioctl(random.as_raw_fd(), RNDADDENTROPY, &pool) < 0
            || libc::ioctl(random.as_raw_fd(), RNDRESEEDCRNG) < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
