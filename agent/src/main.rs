use sandpiper_agent::{agent::Agent, args, channel};
use std::process::ExitCode;
use tokio::task::LocalSet;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("sandpiper-agent: {problem}\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sandpiper-agent: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let exit_on_eof = args.exit_on_eof;
    let outcome = LocalSet::new().block_on(&runtime, channel::serve(Agent::new(args)));
    if let Err(error) = &outcome {
        eprintln!("sandpiper-agent: the channel failed: {error}");
    }
    if exit_on_eof {
        return if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // PID 1 must not end while its instance lives: the host ends the instance.
    loop {
        std::thread::park();
    }
}
