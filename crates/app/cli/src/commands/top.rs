//! `evb top`: the status of a service in a terminal.

mod screen;

use crate::{failure::Failure, signals::stop_on_signals, terminal::width};
use clap::Args;
use evb_record::Outcome;
use evb_serve::{Client, Problem};
use std::{
    io::{IsTerminal as _, stdout},
    path::PathBuf,
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// Moves to the top left corner.
const HOME: &str = "\x1b[H";
/// Clears what is right of the cursor.
const REST_OF_LINE: &str = "\x1b[K";
/// Clears what is below the cursor.
const REST_OF_SCREEN: &str = "\x1b[J";
/// Clears the whole screen.
const CLEAR: &str = "\x1b[2J";

#[derive(Args)]
pub(crate) struct TopArgs {
    /// Address that `evb serve` printed, without the token behind it
    #[arg(value_name = "ADDRESS", default_value = "http://127.0.0.1:8080")]
    address: String,
    /// A file with the token of an operator; else the environment variable EVB_HTTP_TOKEN has it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates that vouch for a service with TLS: its own, or that of the authority that signed it (PEM)
    #[arg(long, value_name = "FILE", default_value = "/etc/ssl/certs/ca-certificates.crt")]
    ca: PathBuf,
    /// Show the status once and end, which is the default where the output is not a terminal
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(args: &TopArgs) -> Result<Outcome, Failure> {
    let client = Client::new(&args.address, &token(args)?, &args.ca)?;
    if args.once || !stdout().is_terminal() {
        print!("{}", screen::of(&client.status()?, width(), usize::MAX));
        return Ok(Outcome::Good);
    }
    let stop = stop_on_signals("the terminal is yours again")?;
    print!("{CLEAR}");
    let mut last = None;
    while !stop.load(Ordering::Relaxed) {
        let (text, is_stale) = match client.status() {
            Ok(status) => (screen::of(&status, width(), height()), None),
            Err(problem) if last.is_none() => return Err(problem.into()),
            // The service may come back.
            Err(problem) => (last.clone().unwrap_or_default(), Some(problem.message)),
        };
        let note = is_stale.map(|why| format!("stale: {why}\n")).unwrap_or_default();
        let lines = format!("{note}{text}").replace('\n', &format!("{REST_OF_LINE}\n"));
        print!("{HOME}{lines}{REST_OF_SCREEN}");
        last = Some(text);
        thread::sleep(INTERVAL);
    }
    Ok(Outcome::Good)
}

/// The token. Not an argument: all users of a machine can read those.
fn token(args: &TopArgs) -> Result<String, Failure> {
    let hint = "EVB_HTTP_TOKEN has the token of an operator, or `--token-file FILE` a file; `evb serve` prints it behind its address";
    if args.address.contains("#token=") {
        return Err(Failure::with_hint(
            "all users of this machine can read a token in the arguments of a command",
            hint,
        ));
    }
    let token = match &args.token_file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| Failure::with_hint(format!("{}: {error}", file.display()), hint))?,
        None => std::env::var("EVB_HTTP_TOKEN").map_err(|_| Failure::with_hint("a token is needed", hint))?,
    };
    Ok(token.trim().to_owned())
}

impl From<Problem> for Failure {
    fn from(Problem { message, hint }: Problem) -> Self {
        Self::Other { message, hint }
    }
}

/// Lines of the terminal.
fn height() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0))
}
