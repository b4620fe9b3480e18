use sandpiper_agent::files::open_dir::open_dir;
use sandpiper_agent::{agent::Agent, args, channel, init, log, process, relay, startup, user};
use std::process::ExitCode;
use std::rc::Rc;
use tokio::task::{LocalSet, spawn_local};

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(problem) => {
            log::warn(format_args!("{problem}\n{}", args::USAGE));
            return ExitCode::from(2);
        }
    };
    let is_init = args.is_init;
    let outcome = if args.is_relay { relay::run(&args.channel) } else { run(args) };
    if let Err(error) = &outcome {
        log::warn(format_args!("cannot go on: {error}"));
    }
    if is_init {
        init::power_off();
    }
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(args: args::Args) -> std::io::Result<()> {
    if args.is_init {
        init::boot(&args)?;
    }
    let startup = startup::prepare()?;
    open_dirs(&args);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    LocalSet::new().block_on(&runtime, async {
        let exit_on_eof = args.exit_on_eof;
        let agent = Agent::new(args, startup.open_files);
        let reaper = spawn_local(process::reaper::run(Rc::clone(&agent), startup.signals));
        let outcome = channel::serve(agent).await;
        if exit_on_eof {
            process::tree::kill_everything();
            return outcome;
        }
        if let Err(error) = outcome {
            log::warn(format_args!("the channel failed: {error}"));
        }
        // PID 1 must not end while its instance lives: the host ends the instance.
        reaper.await?
    })
}

/// A volume that cannot be opened ends nothing: what needs it says so itself.
fn open_dirs(args: &args::Args) {
    for dir in &args.open_dirs {
        if let Err(error) = open_dir(dir, &user::default_user(args)) {
            log::warn(format_args!("{} cannot be opened to everybody: {error}", dir.display()));
        }
    }
}
