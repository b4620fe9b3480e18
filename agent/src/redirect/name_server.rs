//! The file that tells programs which name server to ask.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;

/// Changes the file in place, because an engine may have mounted it. A link is replaced: it leads to a file of a service
/// that does not run here.
pub fn write(path: &Path, address: Ipv4Addr) -> io::Result<()> {
    let content = format!("nameserver {address}\n");
    match fs::symlink_metadata(path) {
        Ok(entry) if entry.is_symlink() => fs::remove_file(path)?,
        Ok(_) if fs::read(path)? == content.as_bytes() => return Ok(()),
        // An image without programs may have no such directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.parent().is_some_and(Path::exists) => {
            return Ok(());
        }
        _ => {}
    }
    let mut file = File::create(path)?;
    file.write_all(content.as_bytes())?;
    // A machine cloned with this page unwritten never reads it back if it runs out of memory first.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::write;
    use std::fs;
    use std::net::Ipv4Addr;
    use std::os::unix::fs::{MetadataExt, symlink};

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);

    #[test]
    fn changes_the_file_in_place_and_replaces_a_link() {
        let directory = std::env::temp_dir().join(format!("sandpiper-name-server-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| directory.join(name));
        for path in [&file, &other] {
            fs::write(path, "nameserver 192.0.2.1\nnameserver 192.0.2.2\n").unwrap();
        }
        symlink(&other, &link).unwrap();
        let inode = fs::metadata(&file).unwrap().ino();
        for path in [&file, &link, &directory.join("missing/file")] {
            write(path, ADDRESS).unwrap();
        }
        let contents = [&file, &link, &other].map(|path| fs::read_to_string(path).unwrap());
        let is_same_file = fs::metadata(&file).unwrap().ino() == inode;
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(contents[..2], ["nameserver 10.0.2.3\n"; 2]);
        assert!(contents[2].starts_with("nameserver 192.0.2.1"));
        assert!(is_same_file);
    }
}
