//! Finds a disk by the serial number from the host, because device names depend on the order of discovery. Firecracker
//! chooses its own serial numbers but keeps the order of its disks.

use std::fs;
use std::path::{Path, PathBuf};

/// `index` is the position among all disks, for a host that sets no serial numbers.
pub fn find(serial: &str, index: usize) -> Option<String> {
    let blocks = Path::new("/sys/block");
    let name = find_in(blocks, serial).or_else(|| disks_in(blocks).into_iter().nth(index))?;
    Some(format!("/dev/{name}"))
}

fn find_in(blocks: &Path, serial: &str) -> Option<String> {
    let has_serial = |path: PathBuf| fs::read_to_string(path.join("serial")).is_ok_and(|text| text.trim() == serial);
    let found = fs::read_dir(blocks).ok()?.flatten().find(|entry| has_serial(entry.path()))?;
    found.file_name().into_string().ok()
}

/// Sorted by name, which is the order of discovery: a machine has few disks, so names have one letter.
fn disks_in(blocks: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(blocks) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with("vd"));
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::{disks_in, find_in};
    use std::fs;

    #[test]
    fn finds_a_disk_by_its_serial_number_and_lists_virtual_disks_in_order() {
        let blocks = std::env::temp_dir().join(format!("sandpiper-blocks-{}", std::process::id()));
        for (name, serial) in [("vda", "disk"), ("vdb", "base\n")] {
            fs::create_dir_all(blocks.join(name)).unwrap();
            fs::write(blocks.join(name).join("serial"), serial).unwrap();
        }
        fs::create_dir_all(blocks.join("loop0")).unwrap();
        let found = [find_in(&blocks, "base"), find_in(&blocks, "disk"), find_in(&blocks, "other")];
        let disks = disks_in(&blocks);
        fs::remove_dir_all(&blocks).unwrap();
        assert_eq!(disks, ["vda", "vdb"]);
        assert_eq!(found, [Some("vdb".to_string()), Some("vda".to_string()), None]);
    }
}
