//! `evb runs`: the registry of runs.

use crate::{
    failure::Failure,
    terminal::{show, width},
};
use clap::{Args, Subcommand};
use evb_record::{Outcome, Record};
use evb_serve::registry::{Registry, RegistryError, RunDetails, RunRow, csv, parquet};
use std::{collections::BTreeMap, path::PathBuf};

/// Largest distance of clocks that is not worth a word.
const CLOCK_IN_STEP_S: f64 = 0.1;

#[derive(Subcommand)]
pub(crate) enum RunsCommand {
    /// List the runs, the latest first
    List(ListArgs),
    /// Show a run: its record, or the experiment file that it ran
    Show(ShowArgs),
    /// Compare two runs, and fail when the second is worse
    Compare(CompareArgs),
}

#[derive(Args)]
struct RegistryArgs {
    /// The registry of runs, beside the event files
    #[arg(long, value_name = "FILE", default_value = "evb-data/runs.db")]
    registry: PathBuf,
}

impl RegistryArgs {
    fn open(&self) -> Result<Registry, Failure> {
        Ok(Registry::open(&self.registry)?)
    }
}

#[derive(Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    /// Runs before this one
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// Most runs to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Print JSON, a run on each line
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Write a Parquet file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv"])]
    parquet: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    /// Number of the run
    number: u64,
    /// Print the record as JSON
    #[arg(long, conflicts_with = "experiment")]
    json: bool,
    /// Print the experiment file that the run had, every default filled in
    #[arg(long)]
    experiment: bool,
}

#[derive(Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    /// Number of the run from before
    old: u64,
    /// Number of the run from now
    new: u64,
    /// The largest difference that does not matter
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = super::compare::percent)]
    tolerance: f64,
}

pub(crate) fn run(command: &RunsCommand) -> Result<Outcome, Failure> {
    match command {
        RunsCommand::List(args) => list(args),
        RunsCommand::Show(args) => show_run(args),
        RunsCommand::Compare(args) => compare(args),
    }
}

fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    let runs = args.registry.open()?.list(args.before, args.limit)?;
    if let Some(path) = &args.parquet {
        let failure = |error: String| Failure::new(format!("{}: {error}", path.display()));
        let file = std::fs::File::create(path).map_err(|error| failure(error.to_string()))?;
        parquet(&runs, file).map_err(|error| failure(error.to_string()))?;
        return Ok(Outcome::Good);
    }
    match (args.json, args.csv) {
        (true, _) => {
            for run in &runs {
                println!("{}", serde_json::to_string(run).map_err(Failure::new)?);
            }
        }
        (_, true) => print!("{}", csv(&runs)),
        _ => show(&table(&runs)),
    }
    Ok(Outcome::Good)
}

fn table(runs: &[RunRow]) -> String {
    let rows: Vec<_> = runs
        .iter()
        .map(|run| evb_report::RunLine {
            number: run.number,
            run_type: &run.run_type,
            experiment: &run.experiment,
            comment: &run.comment,
            state: &run.state,
            started: date(run.started),
            seconds: run.ended.map(|ended| ended - run.started),
            events: run.events,
            event_rate_hz: run.event_rate_hz,
            verdict: run.verdict,
        })
        .collect();
    evb_report::run_list(&rows, width())
}

/// A time in the zone of this machine.
fn date(seconds: f64) -> String {
    let time = jiff::Timestamp::from_second(seconds as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn find(registry: &Registry, number: u64) -> Result<RunDetails, Failure> {
    let missing = || Failure::with_hint(format!("run {number} does not exist"), "`evb runs list` lists all runs");
    registry.show(number)?.ok_or_else(missing)
}

fn show_run(args: &ShowArgs) -> Result<Outcome, Failure> {
    let run = find(&args.registry.open()?, args.number)?;
    if args.experiment {
        print!("{}", run.experiment_text);
        return Ok(Outcome::Good);
    }
    let record = record_of(&run)?;
    match args.json {
        true => println!("{}", serde_json::to_string(record).map_err(Failure::new)?),
        false => {
            print!("{}", table(std::slice::from_ref(&run.row)));
            show(&evb_report::run_summary(record, width()));
            println!("{}", machines(&run));
        }
    }
    Ok(record.outcome())
}

/// The machines of the nodes, and how far their clocks were from that of run control.
fn machines(run: &RunDetails) -> String {
    let mut machines: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for node in &run.nodes {
        let clock = match node.clock_ahead_s {
            ahead if ahead.abs() < CLOCK_IN_STEP_S => String::new(),
            ahead => format!(", clock {:.1} s {}", ahead.abs(), if ahead > 0.0 { "ahead" } else { "behind" }),
        };
        machines.entry((&node.host, clock)).or_default().push(&node.name);
    }
    let lines = machines.iter().map(|((host, clock), nodes)| format!("{host}{clock}: {}", nodes.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

fn record_of(run: &RunDetails) -> Result<&Record, Failure> {
    let why = format!("run {} is {}: it has no record", run.row.number, run.row.state);
    run.record.as_ref().ok_or_else(|| Failure::with_hint(why, "a run gets its record when it ends"))
}

fn compare(args: &CompareArgs) -> Result<Outcome, Failure> {
    let registry = args.registry.open()?;
    let (old, new) = (find(&registry, args.old)?, find(&registry, args.new)?);
    let records = [record_of(&old)?.clone(), record_of(&new)?.clone()];
    let rows = evb_report::compare_runs(&records[..1], &records[1..], args.tolerance);
    show(&evb_report::run_comparison_table(&rows, width()));
    Ok(Outcome::worst(rows.iter().map(|row| row.difference.outcome())))
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::with_hint(error, "`--registry FILE` names the file; `evb serve` prints where it is")
    }
}
