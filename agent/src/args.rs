//! The command line.

use std::path::PathBuf;

pub const USAGE: &str =
    "usage: sandpiper-agent [--channel stdio|unix:PATH|unix:@NAME|serial:PATH|vsock:PORT] [--default-user NAME]
                       [--journal-dir DIR] [--open-dir DIR]... [--kill-largest] [--exit-on-eof] [--init]
                       [--network shared|redirected|private]
       sandpiper-agent init,CHANNEL,USER
       sandpiper-agent --relay --channel unix:@NAME
       sandpiper-agent --service always|on-failure|never -- COMMAND [ARGUMENT]...";

/// Starts the short form of `--init`, `--channel` and `--default-user` on a kernel's command line. Firecracker rejects a
/// command line that holds two dashes more than once.
const INIT_WORD: &str = "init,";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelKind {
    Stdio,
    Unix(PathBuf),
    /// An abstract name. It has no file that code inside could remove or an image could occupy.
    Abstract(String),
    Serial(PathBuf),
    Vsock(u32),
}

/// The network namespace that the agent runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Of the host or an engine; the agent leaves it alone.
    Shared,
    /// Without any device but loopback, and the redirection to the agent is set up.
    Redirected,
    /// Without any device but loopback; the agent sets the redirection up.
    Private,
}

/// When a service starts again after its command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    Always,
    OnFailure,
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub restart: Restart,
    pub command: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Args {
    pub channel: ChannelKind,
    /// Runs processes and owns files unless a call names another user: a name, "uid" or "uid:gid". If the sandbox has no
    /// such user, the agent's own user.
    pub default_user: Option<String>,
    /// Where journals that exceed their memory go.
    pub journal_dir: PathBuf,
    /// Volumes to make writable for all users inside.
    pub open_dirs: Vec<PathBuf>,
    /// Kill the largest process when memory runs out, for a kernel that does not.
    pub kills_largest: bool,
    /// Exit when stdin ends, for an agent that is not PID 1.
    pub exit_on_eof: bool,
    /// Copy bytes between stdio and the agent that serves the channel, instead of being an agent.
    pub is_relay: bool,
    /// Set up the virtual machine as its first process.
    pub is_init: bool,
    pub network: Network,
    /// Supervise this command instead of being an agent.
    pub service: Option<Service>,
}

pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        channel: ChannelKind::Stdio,
        default_user: None,
        journal_dir: PathBuf::from("/var/lib/sandpiper/journals"),
        open_dirs: Vec::new(),
        kills_largest: false,
        exit_on_eof: false,
        is_relay: false,
        is_init: false,
        network: Network::Shared,
        service: None,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--channel" => args.channel = parse_channel(&value()?)?,
            "--default-user" => args.default_user = Some(value()?),
            "--journal-dir" => args.journal_dir = PathBuf::from(value()?),
            "--open-dir" => args.open_dirs.push(PathBuf::from(value()?)),
            "--kill-largest" => args.kills_largest = true,
            "--exit-on-eof" => args.exit_on_eof = true,
            "--relay" => args.is_relay = true,
            "--init" => set_init(&mut args),
            "--network" => args.network = parse_network(&value()?)?,
            "--service" => {
                let restart = parse_restart(&value()?)?;
                args.service = Some(Service { restart, command: parse_command(&mut words)? });
            }
            word if word.starts_with(INIT_WORD) => parse_init_word(&word[INIT_WORD.len()..], &mut args)?,
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(args)
}

/// A machine has no network device.
fn set_init(args: &mut Args) {
    args.is_init = true;
    args.network = Network::Private;
}

/// `CHANNEL,USER`
fn parse_init_word(text: &str, args: &mut Args) -> Result<(), String> {
    let (channel, user) = text.split_once(',').ok_or(format!("{INIT_WORD}{text}: expected init,CHANNEL,USER"))?;
    set_init(args);
    args.channel = parse_channel(channel)?;
    args.default_user = Some(user.to_string());
    Ok(())
}

fn parse_network(text: &str) -> Result<Network, String> {
    match text {
        "shared" => Ok(Network::Shared),
        "redirected" => Ok(Network::Redirected),
        "private" => Ok(Network::Private),
        _ => Err(format!("--network {text}: expected shared, redirected or private")),
    }
}

fn parse_restart(text: &str) -> Result<Restart, String> {
    match text {
        "always" => Ok(Restart::Always),
        "on-failure" => Ok(Restart::OnFailure),
        "never" => Ok(Restart::Never),
        _ => Err(format!("--service {text}: expected always, on-failure or never")),
    }
}

/// `-- COMMAND [ARGUMENT]...`, up to the end.
fn parse_command(words: &mut impl Iterator<Item = String>) -> Result<Vec<String>, String> {
    let separator = words.next();
    let command: Vec<String> = words.collect();
    if separator.as_deref() != Some("--") || command.is_empty() {
        return Err("--service needs -- and a command".into());
    }
    Ok(command)
}

fn parse_channel(text: &str) -> Result<ChannelKind, String> {
    match text.split_once(':') {
        None if text == "stdio" => Ok(ChannelKind::Stdio),
        Some(("unix", name)) if name.len() > 1 && name.starts_with('@') => Ok(ChannelKind::Abstract(name[1..].into())),
        Some(("unix", path)) if path.starts_with('/') => Ok(ChannelKind::Unix(path.into())),
        Some(("serial", path)) if path.starts_with('/') => Ok(ChannelKind::Serial(path.into())),
        Some(("vsock", port)) => {
            port.parse().map(ChannelKind::Vsock).map_err(|_| format!("vsock port {port} is not a number"))
        }
        _ => Err(format!("--channel {text}: expected stdio, unix:PATH, unix:@NAME, serial:PATH or vsock:PORT")),
    }
}

#[cfg(test)]
mod tests {
    use super::{ChannelKind, Network, Restart, Service, parse};

    fn parse_words(words: &[&str]) -> Result<super::Args, String> {
        parse(words.iter().map(|word| (*word).to_string()))
    }

    #[test]
    fn reads_init_channel_and_user_from_one_word_without_dashes() {
        let args = parse_words(&["init,vsock:52,user"]).unwrap();
        assert!(args.is_init);
        assert_eq!(args.channel, ChannelKind::Vsock(52));
        assert_eq!(args.default_user.as_deref(), Some("user"));
    }

    #[test]
    fn leaves_the_network_alone_unless_it_is_told_or_the_machine_is_its_own() {
        assert_eq!(parse_words(&[]).unwrap().network, Network::Shared);
        assert_eq!(parse_words(&["--network", "redirected"]).unwrap().network, Network::Redirected);
        assert_eq!(parse_words(&["--init"]).unwrap().network, Network::Private);
        assert_eq!(parse_words(&["init,vsock:52,user"]).unwrap().network, Network::Private);
    }

    #[test]
    fn reads_the_command_of_a_service_with_its_dashes() {
        let args = parse_words(&["--service", "always", "--", "nginx", "--", "-g", "daemon off;"]).unwrap();
        let command = ["nginx", "--", "-g", "daemon off;"].map(String::from).to_vec();
        assert_eq!(args.service, Some(Service { restart: Restart::Always, command }));
    }

    #[test]
    fn refuses_incomplete_and_unknown_arguments() {
        for words in [
            &["init,vsock:52"][..],
            &["init,nowhere,user"],
            &["init"],
            &["--channel"],
            &["--network", "host"],
            &["--service", "sometimes", "--", "true"],
            &["--service", "never", "--"],
        ] {
            assert!(parse_words(words).is_err());
        }
    }
}
