use sandpiper_agent::{agent::Agent, args, args::Network, channel, init, net, os::log, process, startup};
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
    if let Some(service) = &args.service {
        return process::service::run(service);
    }
    let is_init = args.is_init;
    let outcome = if args.is_relay { channel::relay::run(&args.channel) } else { run(args) };
    if let Err(error) = &outcome {
        log::warn(format_args!("the agent failed: {error}"));
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
    startup::join_network(&args)?;
    let startup = startup::prepare()?;
    startup::open_dirs(&args);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    LocalSet::new().block_on(&runtime, async {
        let exit_on_eof = args.exit_on_eof;
        let kills_largest = args.kills_largest;
        let agent = Agent::new(args, startup.open_files);
        if agent.args.network != Network::Shared {
            log::attempt("listen for redirected connections", net::listen::start(&agent.network));
        }
        let reaper = spawn_local(process::reaper::run(Rc::clone(&agent.processes), startup.signals));
        if kills_largest {
            spawn_local(process::memory_guard::run(Rc::clone(&agent.processes)));
        }
        let outcome = channel::serve(agent).await;
        if exit_on_eof {
            process::tree::kill_everything();
            return outcome;
        }
        if let Err(error) = outcome {
            log::warn(format_args!("the channel failed: {error}"));
        }
        // PID 1 must not exit while its instance runs: the host stops the instance.
        reaper.await?
    })
}
