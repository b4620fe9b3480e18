//! What the host says about this machine: lines of a name and a value. It is a file of QEMU's fw_cfg and not an argument of the
//! kernel, because a machine that was copied from a running one has another such file and still the old arguments.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

const PATH: &str = "/sys/firmware/qemu_fw_cfg/by_name/opt/sandpiper/instance/raw";
const MAX_BYTES: usize = 4096;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instance {
    pub hostname: Option<String>,
    /// Random bytes, other ones for every machine and every copy.
    pub seed: Vec<u8>,
    /// How many processes there may be, the kernel's own apart.
    pub processes: Option<u64>,
}

/// A host that says nothing is fine.
pub fn read() -> io::Result<Option<Instance>> {
    let Some(file) = file()? else { return Ok(None) };
    let mut bytes = [0; MAX_BYTES];
    let size = file.read_at(&mut bytes, 0)?;
    Ok(Some(parse(&String::from_utf8_lossy(&bytes[..size]))))
}

/// Opened once: each reading of it asks the host anew.
fn file() -> io::Result<Option<&'static File>> {
    static FILE: OnceLock<File> = OnceLock::new();
    if let Some(file) = FILE.get() {
        return Ok(Some(file));
    }
    match File::open(PATH) {
        Ok(file) => Ok(Some(FILE.get_or_init(|| file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lines that are not understood are from a newer host.
fn parse(text: &str) -> Instance {
    let mut instance = Instance::default();
    for (name, value) in text.lines().filter_map(|line| line.trim().split_once(' ')) {
        match name {
            "hostname" => instance.hostname = Some(value.to_string()).filter(|name| is_hostname(name)),
            "seed" => instance.seed = parse_hex(value).unwrap_or_default(),
            "processes" => instance.processes = value.parse().ok(),
            _ => {}
        }
    }
    instance
}

fn is_hostname(name: &str) -> bool {
    (1..=63).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::{Instance, parse};

    #[test]
    fn names_and_values_are_read_line_by_line() {
        let text = "hostname vm-1\nseed 00ff10\nprocesses 512\n\n\n";
        let expected = Instance { hostname: Some("vm-1".to_string()), seed: vec![0, 255, 16], processes: Some(512) };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        let text = "hostname not a name\nseed 0ff\nprocesses many\nnewer thing\nnothing\n\0\0";
        assert_eq!(parse(text), Instance::default());
        assert_eq!(parse("seed äé"), Instance::default());
    }
}
