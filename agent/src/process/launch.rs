//! Starts a process from the parameters of a spawn.

use super::command::Command;
use super::environment::Environment;
use super::journal::{DEFAULT_CAPACITY_BYTES, Journal, MIN_CAPACITY_BYTES};
use super::launch_error;
use super::output::Output;
use super::process::{Process, Progress};
use super::spawn::{self, Credentials, Program, Spawned};
use super::stdio::Stdio;
use super::table::ProcessTable;
use super::terminal::Size;
use crate::args::Args;
use crate::error::{AgentError, Code, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::os::random_id;
use crate::os::user::{self, User};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::spawn_local;

#[derive(Deserialize, Default)]
pub struct SpawnParams {
    pub process: Option<String>,
    pub argv: Option<Vec<String>>,
    pub command: Option<String>,
    pub code: Option<CodeParams>,
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub user: Option<String>,
    pub stdin: Option<bool>,
    pub pty: Option<Size>,
    pub timeout_ms: Option<u64>,
    pub journal_bytes: Option<u64>,
}

#[derive(Deserialize)]
pub struct CodeParams {
    pub language: String,
    pub path: String,
    pub ephemeral: Option<bool>,
}

pub fn launch(args: &Args, processes: &ProcessTable, params: SpawnParams) -> Result<Rc<Process>> {
    let id = params.process.clone().unwrap_or_else(random_id);
    check_id(&id)?;
    check_numbers(&params)?;
    processes.check_new(&id)?;
    let mut ephemeral = Ephemeral(None);
    let command = choose_command(args, &params, &mut ephemeral)?;
    let user = choose_user(args, params.user.as_deref())?;
    let environment = Environment::new(std::env::vars_os(), &user, &id, params.pty.is_some(), &params.env)?;
    let mut cwd = choose_directory(&user, params.cwd.as_deref());
    let resolved = command.resolve(&environment, &cwd)?;
    let is_root = user::own_ids().0 == 0;
    let pipes = &processes.prepared_pipes;
    let stdio = match params.pty {
        Some(size) => Stdio::terminal(size, is_root.then_some(user.uid))?,
        None => Stdio::pipes(pipes, params.stdin == Some(true))?,
    };

    let argv: Vec<CString> = resolved.argv.iter().map(|word| c_string(word.as_bytes())).collect::<Result<_>>()?;
    let program = Program {
        path: &c_string(resolved.program.as_os_str().as_bytes())?,
        argv: &argv,
        env: &environment.into_strings(),
        cwd: &c_string(cwd.as_os_str().as_bytes())?,
        or_root: params.cwd.is_none(),
        stdio: stdio.child,
        has_terminal: params.pty.is_some(),
        credentials: (is_root && user::own_ids() != (user.uid, user.gid)).then_some(Credentials {
            uid: user.uid,
            gid: user.gid,
            groups: (user.groups != user::own_groups()).then_some(&user.groups),
        }),
        open_files: processes.open_files,
    };
    let (reading, writing) = pipes.plain()?;
    let spawned = spawn::spawn(&program, (&reading, writing));
    pipes.close_later(reading);
    let Spawned { pid, is_at_root } =
        spawned.map_err(|failure| launch_error::describe(&failure, &resolved, &cwd, &user))?;

    let journal = Journal::new(params.journal_bytes.unwrap_or(DEFAULT_CAPACITY_BYTES), args.journal_dir.clone());
    if is_at_root {
        cwd = "/".into();
    }
    drop(stdio.input);
    let process = Rc::new(Process {
        id,
        pid,
        argv: resolved.argv,
        cwd: cwd.to_string_lossy().into_owned(),
        user: user.name,
        started_at_ms: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64,
        started: Instant::now(),
        output: Output::new(journal, stdio.pipes, stdio.outputs),
        stdin: stdio.stdin,
        has_terminal: stdio.terminal.is_some(),
        terminal: RefCell::new(stdio.terminal),
        ephemeral_file: ephemeral.0.take(),
        progress: Progress::default(),
    });
    processes.insert(Rc::clone(&process));
    if let Some(timeout_ms) = params.timeout_ms {
        set_timer(&process, Duration::from_millis(timeout_ms));
    }
    Ok(process)
}

/// A source file that disappears with its process. A launch that fails removes it at once.
struct Ephemeral(Option<PathBuf>);

impl Drop for Ephemeral {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn check_id(id: &str) -> Result<()> {
    let good =
        (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if good {
        return Ok(());
    }
    Err(AgentError::invalid("bad_process_id", "a process id has 1 to 64 letters, digits, \"_\" and \"-\""))
}

fn check_numbers(params: &SpawnParams) -> Result<()> {
    if params.timeout_ms == Some(0) {
        return Err(AgentError::invalid("bad_params", "timeout_ms must be at least 1"));
    }
    if params.journal_bytes.is_some_and(|bytes| bytes < MIN_CAPACITY_BYTES) {
        return Err(AgentError::invalid("bad_params", format!("journal_bytes must be at least {MIN_CAPACITY_BYTES}")));
    }
    params.pty.map_or(Ok(()), |size| size.check().map(drop))
}

fn choose_command(args: &Args, params: &SpawnParams, ephemeral: &mut Ephemeral) -> Result<Command> {
    match (&params.argv, &params.command, &params.code) {
        (Some(argv), None, None) => Ok(Command::Argv(argv.clone())),
        (None, Some(command), None) => Ok(Command::Line(command.clone())),
        (None, None, Some(code)) => {
            let path = SandboxPath::resolve(args, code.path.clone())?.as_path().to_path_buf();
            if code.ephemeral == Some(true) {
                ephemeral.0 = Some(path.clone());
            }
            Ok(Command::Code { language: code.language.clone(), path })
        }
        (None, None, None) => Ok(Command::Shell),
        _ => Err(AgentError::invalid("bad_params", "give at most one of argv, command and code")),
    }
}

fn choose_user(args: &Args, named: Option<&str>) -> Result<User> {
    let Some(name) = named else { return Ok(user::default_user(args)) };
    let user = user::find(name)?;
    let own = user::own_ids();
    if own.0 != 0 && own != (user.uid, user.gid) {
        let message =
            format!("cannot run a process as {name:?}: the agent is not root and can run only as its own user");
        return Err(AgentError::new(Code::PermissionDenied, "other_user", message));
    }
    Ok(user)
}

/// Relative directories start at the user's home, or at the root if there is none. The default is the home.
fn choose_directory(user: &User, named: Option<&str>) -> PathBuf {
    let home = user.home.as_deref().unwrap_or(Path::new("/"));
    match named {
        None => home.into(),
        Some(path) if path.starts_with('/') || home.is_dir() => home.join(path),
        Some(path) => Path::new("/").join(path),
    }
}

fn c_string(bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|_| AgentError::invalid("bad_params", "arguments and paths cannot contain a NUL byte"))
}

fn set_timer(process: &Rc<Process>, timeout: Duration) {
    let weak = Rc::downgrade(process);
    let task = spawn_local(async move {
        tokio::time::sleep(timeout).await;
        if let Some(process) = weak.upgrade() {
            process.progress.has_timed_out.set(true);
            process.signal_tree(libc::SIGKILL);
        }
    });
    *process.progress.timer.borrow_mut() = Some(task.abort_handle());
}
