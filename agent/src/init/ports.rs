//! Links virtio-serial ports under their names from the host, like udev.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const NAMED: &str = "/dev/virtio-ports";
/// The host sends the name of a port in a separate message, shortly after the driver has started.
const TIMEOUT: Duration = Duration::from_secs(30);

pub fn wait_for(path: &Path) -> io::Result<()> {
    let started = Instant::now();
    fs::create_dir_all(NAMED)?;
    loop {
        for (name, device) in named_in(Path::new("/sys/class/virtio-ports")) {
            let _ = symlink(Path::new("/dev").join(device), Path::new(NAMED).join(name));
        }
        if path.exists() {
            return Ok(());
        }
        if started.elapsed() > TIMEOUT {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("port {} did not appear", path.display())));
        }
        sleep(Duration::from_millis(1));
    }
}

/// Names with their devices. Ignores names that lead out of the directory.
fn named_in(class: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(class) else { return Vec::new() };
    let name_of = |path: PathBuf| fs::read_to_string(path.join("name")).ok().map(|name| name.trim().to_string());
    entries
        .flatten()
        .filter_map(|entry| Some((name_of(entry.path())?, entry.file_name().into())))
        .filter(|(name, _)| !name.is_empty() && !name.contains('/') && !name.starts_with('.'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::named_in;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn ignores_ports_without_a_plain_name() {
        let class = std::env::temp_dir().join(format!("sandpiper-ports-{}", std::process::id()));
        for (device, name) in [("vport0p1", "agent\n"), ("vport0p2", "../null"), ("vport0p3", "")] {
            fs::create_dir_all(class.join(device)).unwrap();
            fs::write(class.join(device).join("name"), name).unwrap();
        }
        fs::create_dir_all(class.join("vport0p4")).unwrap();
        let named = named_in(&class);
        fs::remove_dir_all(&class).unwrap();
        assert_eq!(named, [("agent".to_string(), PathBuf::from("vport0p1"))]);
    }
}
