//! The host's description of this machine: one name and value per line. QEMU passes it as a file of fw_cfg: a copy of a
//! running machine gets a new file, but keeps its old kernel arguments. Firecracker has no such files. It uses kernel
//! arguments at boot, and the host writes a file into a restored machine.

use crate::os::small_file::read_small_file;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::Duration;

const PATH: &str = "/sys/firmware/qemu_fw_cfg/by_name/opt/sandpiper/instance/raw";
const MAX_BYTES: usize = 4096;
const WRITTEN: &str = "/run/sandpiper/instance";
const ARGUMENTS: &str = "/proc/cmdline";
const ARGUMENT_PREFIX: &str = "sandpiper.";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instance {
    pub hostname: Option<String>,
    /// Random bytes, different for every machine and every copy.
    pub seed: Vec<u8>,
    /// The limit on processes, without the kernel's own.
    pub processes: Option<u64>,
    /// The current time, since 1970.
    pub time: Option<Duration>,
}

/// The description at boot.
pub fn at_boot() -> io::Result<Option<Instance>> {
    match read()? {
        None => Ok(Some(parse_arguments(&read_small_file(ARGUMENTS)?))),
        instance => Ok(instance),
    }
}

/// The description after a restore. The file that the host has written is valid once, for this moment.
pub fn at_wake() -> io::Result<Option<Instance>> {
    if let Some(instance) = read()? {
        return Ok(Some(instance));
    }
    let Ok(text) = read_small_file(WRITTEN) else { return Ok(None) };
    let age = fs::metadata(WRITTEN)?.modified()?.elapsed().unwrap_or_default();
    fs::remove_file(WRITTEN)?;
    Ok(Some(aged(parse(&text), age)))
}

/// The time was right when the file was written. This clock is late, but both ends of the interval are on it.
fn aged(instance: Instance, age: Duration) -> Instance {
    Instance { time: instance.time.map(|time| time + age), ..instance }
}

/// None when the host passes no file.
fn read() -> io::Result<Option<Instance>> {
    let Some(file) = file()? else { return Ok(None) };
    let mut bytes = [0; MAX_BYTES];
    let size = file.read_at(&mut bytes, 0)?;
    Ok(Some(parse(&String::from_utf8_lossy(&bytes[..size]))))
}

/// Opened once: each read asks the host again.
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

/// Ignores unknown lines, which come from a newer host.
fn parse(text: &str) -> Instance {
    let mut instance = Instance::default();
    for (name, value) in text.lines().filter_map(|line| line.trim().split_once(' ')) {
        match name {
            "hostname" => instance.hostname = Some(value.to_string()).filter(|name| is_hostname(name)),
            "seed" => instance.seed = parse_hex(value).unwrap_or_default(),
            "processes" => instance.processes = value.parse().ok(),
            "time" => instance.time = value.parse().ok().map(Duration::from_millis),
            _ => {}
        }
    }
    instance
}

/// Reads the kernel arguments with the agent's prefix.
fn parse_arguments(text: &str) -> Instance {
    let words = text.split_ascii_whitespace().take_while(|word| *word != "--");
    let ours = words.filter_map(|word| word.strip_prefix(ARGUMENT_PREFIX)).map(|word| word.replacen('=', " ", 1));
    parse(&ours.collect::<Vec<_>>().join("\n"))
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
    use super::{Instance, aged, parse, parse_arguments};
    use std::time::Duration;

    #[test]
    fn reads_one_name_and_value_per_line() {
        let text = "hostname vm-1\nseed 00ff10\nprocesses 512\ntime 1500\n\n\n";
        let expected = Instance {
            hostname: Some("vm-1".to_string()),
            seed: vec![0, 255, 16],
            processes: Some(512),
            time: Some(Duration::from_millis(1500)),
        };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn adds_the_age_of_the_file_to_its_time() {
        let age = Duration::from_millis(250);
        assert_eq!(aged(parse("time 1500"), age).time, Some(Duration::from_millis(1750)));
        assert_eq!(aged(parse("processes 64"), age).time, None);
    }

    #[test]
    fn reads_kernel_arguments_up_to_the_double_dash() {
        let text = "quiet sandpiper.hostname=vm-2 panic=-1 sandpiper.processes=64 -- --init sandpiper.hostname=other\n";
        let expected = Instance { hostname: Some("vm-2".to_string()), processes: Some(64), ..Instance::default() };
        assert_eq!(parse_arguments(text), expected);
        assert_eq!(parse_arguments("quiet\n"), Instance::default());
    }

    #[test]
    fn ignores_unknown_names_and_invalid_values() {
        let text = "hostname not a name\nseed 0ff\nprocesses many\nnewer thing\nnothing\n\0\0";
        assert_eq!(parse(text), Instance::default());
        assert_eq!(parse("seed äé"), Instance::default());
    }
}
