//! `evb top`: the status of a service in a terminal.

mod client;
mod screen;

use crate::{failure::Failure, signals::stop_on_signals, terminal::width};
use clap::Args;
use client::Client;
use std::{
    io::{IsTerminal as _, stdout},
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
    /// Address that `evb serve` printed, with or without the token behind it
    #[arg(value_name = "ADDRESS", default_value = "http://127.0.0.1:8080")]
    address: String,
    /// Token of an operator, if the address has none
    #[arg(long, value_name = "TOKEN", env = "EVB_HTTP_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Show the status once and end, as is done where the output is no terminal
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(args: &TopArgs) -> Result<bool, Failure> {
    let client = Client::new(&args.address, args.token.as_deref())?;
    if args.once || !stdout().is_terminal() {
        print!("{}", screen::of(&client.status()?, width(), usize::MAX));
        return Ok(true);
    }
    let stop = stop_on_signals("the terminal is yours again")?;
    print!("{CLEAR}");
    let mut last = None;
    while !stop.load(Ordering::Relaxed) {
        let (text, is_stale) = match client.status() {
            Ok(status) => (screen::of(&status, width(), height()), None),
            Err(failure) if last.is_none() => return Err(failure),
            // The service may come back.
            Err(failure) => (last.clone().unwrap_or_default(), Some(failure.to_string())),
        };
        let note = is_stale.map(|why| format!("stale: {why}\n")).unwrap_or_default();
        let lines = format!("{note}{text}").replace('\n', &format!("{REST_OF_LINE}\n"));
        print!("{HOME}{lines}{REST_OF_SCREEN}");
        last = Some(text);
        thread::sleep(INTERVAL);
    }
    Ok(true)
}

/// Lines of the terminal.
fn height() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0))
}
