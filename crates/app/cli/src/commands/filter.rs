//! `evb filter`: filter units for builders on other machines.

use crate::{failure::Failure, progress::say, signals::stop_waiting_on_signals, token};
use clap::Args;
use evb::{Code, JoinFilters, join_builders};
use evb_record::Outcome;
use std::{path::PathBuf, time::Duration};

#[derive(Args)]
pub(crate) struct FilterArgs {
    /// Builder to decide for, as it notes at the beginning of a run with `filter.listen`; may be given several times
    #[arg(long, value_name = "HOST:PORT", required = true)]
    join: Vec<String>,
    /// Number of processes for each builder
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    processes: u16,
    /// Longest wait for a builder, before its first run and between two runs, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
    /// End after this number of runs; by default when no further run begins within the patience
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// A shared library that decides, in place of a program
    #[arg(long, value_name = "FILE", group = "code")]
    library: Option<PathBuf>,
    /// The program that decides, and its arguments
    #[arg(value_name = "PROGRAM", last = true, group = "code")]
    program: Vec<String>,
}

pub(crate) fn run(args: &FilterArgs) -> Result<Outcome, Failure> {
    let token = token::shared()?;
    let stop = stop_waiting_on_signals()?;
    let note = |text: &str| {
        if !args.quiet {
            say(text);
        }
    };
    let options = JoinFilters {
        builders: args.join.clone(),
        processes: args.processes,
        code: code(args)?,
        token,
        patience: Duration::from_secs(args.patience),
        runs: args.runs,
        stop: &stop,
        note: &note,
    };
    join_builders(&options).map_err(|error| Failure::with_hint(error.to_string(), error.hint()))?;
    Ok(Outcome::Good)
}

fn code(args: &FilterArgs) -> Result<Code, Failure> {
    let FilterArgs { library, program, .. } = args;
    match library {
        Some(path) => Ok(Code::Library(path.clone())),
        None if program.is_empty() => Err(Failure::with_hint(
            "no program or library to decide about events",
            "name a program after `--`, as in `evb filter --join HOST:PORT -- python3 filter.py`, or give --library FILE",
        )),
        None => Ok(Code::Program(program.clone())),
    }
}
