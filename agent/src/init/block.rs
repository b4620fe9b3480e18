//! Disks, by the serial numbers that the host gave them: their names depend on the order in which they were found.

use std::fs;
use std::path::{Path, PathBuf};

pub fn find(serial: &str) -> Option<PathBuf> {
    let name = find_in(Path::new("/sys/block"), serial)?;
    Some(Path::new("/dev").join(name))
}

fn find_in(blocks: &Path, serial: &str) -> Option<String> {
    let has_serial = |path: PathBuf| fs::read_to_string(path.join("serial")).is_ok_and(|text| text.trim() == serial);
    let found = fs::read_dir(blocks).ok()?.flatten().find(|entry| has_serial(entry.path()))?;
    found.file_name().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::find_in;
    use std::fs;

    #[test]
    fn a_disk_is_found_by_its_serial_number() {
        let blocks = std::env::temp_dir().join(format!("sandpiper-blocks-{}", std::process::id()));
        for (name, serial) in [("vda", "disk"), ("vdb", "base\n")] {
            fs::create_dir_all(blocks.join(name)).unwrap();
            fs::write(blocks.join(name).join("serial"), serial).unwrap();
        }
        fs::create_dir_all(blocks.join("loop0")).unwrap();
        let found = [find_in(&blocks, "base"), find_in(&blocks, "disk"), find_in(&blocks, "other")];
        fs::remove_dir_all(&blocks).unwrap();
        assert_eq!(found, [Some("vdb".to_string()), Some("vda".to_string()), None]);
    }
}
