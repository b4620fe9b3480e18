//! Loads drivers that are not built into the kernel.

use crate::os::check;
use crate::os::log::attempt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// In the initramfs.
pub const DIRECTORY: &str = "/modules";

/// Loads the modules in the order of their names, which follows their dependencies. A kernel of another version refuses
/// them and may have them built in. A driver that is really missing shows when it is needed.
pub fn load_all() {
    for path in in_order(Path::new(DIRECTORY)) {
        attempt(format_args!("load {}", path.display()), load(&path));
    }
}

fn in_order(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn load(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open and the parameters are an empty text.
    match check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) }) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;
    use std::fs;

    #[test]
    fn loads_modules_in_the_order_of_their_names() {
        let directory = std::env::temp_dir().join(format!("sandpiper-modules-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for name in ["10-overlay.ko", "00-virtio.ko", "02-virtio_pci.ko"] {
            fs::write(directory.join(name), "").unwrap();
        }
        let names: Vec<_> = in_order(&directory).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(names, ["00-virtio.ko", "02-virtio_pci.ko", "10-overlay.ko"]);
    }
}
