//! `evb twin`: runs and a simulation of the same file, and the fit of this machine.

mod points;

use crate::{
    failure::Failure,
    folder::unwritable,
    nodes::NodeArgs,
    progress::{Line, ProgressArgs},
    results::{FolderArgs, PlotArgs},
    signals::Signals,
};
use clap::Args;
use evb::{Command, Observer, OpenSession, Plan, Progress, Record};
use evb_os::cores;
use evb_record::Outcome;
use evb_twin::{Fit, FitPoint, Machine, TwinError, fit_points, interruptions, reference};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Runs of each point of a fit, by default.
const RUNS_OF_FIT: u64 = 3;
/// Per cent by which runs of one kind vary on a machine on which something else works.
const UNSTEADY_PERCENT: f64 = 10.0;
/// Bytes of the cache of a core of which the system reports none.
const USUAL_CACHE: u64 = 1 << 20;
/// Time for which a fit looks for interruptions of the cores.
const WATCHED: Duration = Duration::from_secs(4);

#[derive(Args)]
pub(crate) struct TwinArgs {
    /// The experiment file; of a sweep each point is run and simulated
    #[arg(value_name = "FILE", required_unless_present = "fit")]
    file: Option<PathBuf>,
    /// The network file with the costs of this machine, from --fit
    #[arg(long, value_name = "FILE", requires = "file", required_unless_present = "fit")]
    network: Option<PathBuf>,
    /// Find what event building costs on this machine, and write it into this network file: more than a hundred short
    /// runs in less than three minutes, while nothing else should run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "out", "axis"])]
    fit: Option<PathBuf>,
    /// The transport to fit to
    #[arg(long, value_name = "NAME", requires = "fit", default_value = "in-process")]
    transport: String,
    /// Number of runs of each point: 5 by default, and 3 of each kind with --fit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    turns: Option<u64>,
    /// Compare latencies at this part of the full event rate, too, such as 0.2; several with commas between
    #[arg(long, value_name = "PART", requires = "file", value_delimiter = ',', value_parser = load)]
    load: Vec<f64>,
    /// Set one key of the experiment, such as `run.workers=1`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "file")]
    set: Vec<String>,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    plots: PlotArgs,
    /// Print one JSON record for each point instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// A part of the full rate.
fn load(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|load| *load > 0.0 && *load < 1.0);
    number.ok_or_else(|| "write a part of the full event rate between 0 and 1, such as 0.2".into())
}

pub(crate) fn run(args: &TwinArgs) -> Result<Outcome, Failure> {
    let signals = Signals::listen()?;
    match (&args.fit, &args.file, &args.network) {
        (Some(file), ..) => fit(args, file, &signals),
        (None, Some(file), Some(network)) => points::hold(args, file, network, &signals),
        (None, ..) => Err(Failure::new("a file, and the network of this machine are needed")),
    }
}

/// Runs, one after the other.
struct Runner<'a> {
    signals: &'a Signals,
    line: Line,
    begun: u64,
}

impl Runner<'_> {
    /// Carries out a plan with nodes on this machine.
    fn run(&mut self, open: &OpenSession<'_>, plan: &Plan, text: &str, what: &str) -> Result<Record, Failure> {
        self.line.show(self.begun, what);
        self.begun += 1;
        let record = open()?.run(plan, text, &mut Quiet(self.signals))?;
        if self.signals.any() { Err(Failure::new("stopped")) } else { Ok(record) }
    }
}

/// Shows nothing, and stops a run on a signal.
struct Quiet<'a>(&'a Signals);

impl Observer for Quiet<'_> {
    fn progress(&mut self, _: &Progress) {}
    fn note(&mut self, _: &str) {}
    fn command(&mut self) -> Option<Command> {
        self.0.any().then_some(Command::Stop)
    }
}

/// Finds the costs of this machine.
fn fit(args: &TwinArgs, file: &Path, signals: &Signals) -> Result<Outcome, Failure> {
    let stored = events_folder(file).map_err(|error| unwritable(file, &error))?;
    let points = fit_points(&args.transport, stored.path())?;
    let known = reference(&args.transport)?;
    let plans = [known.plan().0.clone()];
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); points.len()];
    let mut reference_hz = Vec::new();
    let turns = args.turns.unwrap_or(RUNS_OF_FIT);
    let all = (points.len() as u64 + 1) * turns;
    let mut runner = Runner { signals, line: Line::new(Some(all), args.progress), begun: 0 };
    NodeArgs::default().with_sessions(&plans, &mut |open| {
        let mut rate_of = |point: &FitPoint| {
            let (plan, text) = point.plan();
            let rate = runner.run(open, plan, &text, &point.name).map(|record| record.event_rate_hz);
            // What is deleted at once hardly reaches the disk, and takes nothing from the next run.
            remove_files(stored.path());
            rate
        };
        for _ in 0..turns {
            reference_hz.push(rate_of(&known)?);
            for (point, rates) in points.iter().zip(&mut rates) {
                rates.push(rate_of(point)?);
            }
        }
        Ok(())
    })?;
    drop(runner);
    reference_hz.sort_by(f64::total_cmp);
    let runs: Vec<_> = points.into_iter().zip(rates).collect();
    let machine = machine();
    if machine.interruptions.is_none() {
        eprintln!("evb: the interruptions of the cores are not known: no thread could be bound to each of them");
    }
    let fit = Fit::new(&args.transport, machine, reference_hz[reference_hz.len() / 2], &runs)?;
    fs::write(file, fit.file()).map_err(|error| unwritable(file, &error))?;
    let (count, shown) = (fit.residuals.len(), file.display());
    eprintln!(
        "evb: {shown} holds the costs; nine in ten of the {count} event rates are within {:.0} %",
        fit.error_percent()
    );
    if fit.spread_percent() > UNSTEADY_PERCENT {
        eprintln!(
            "evb: runs of one kind varied by {:.0} %: fit again when nothing else works on this machine",
            fit.spread_percent()
        );
    }
    eprintln!("evb: try it with `evb twin FILE --network {shown}`");
    Ok(Outcome::Good)
}

/// A folder beside a file for the events of the runs of a fit.
fn events_folder(file: &Path) -> io::Result<TempDir> {
    let beside = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".evb-fit-").tempdir_in(beside)
}

/// Removes the files of a folder; those that stay are removed with the folder.
fn remove_files(folder: &Path) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.for_each(|file| drop(fs::remove_file(file.path())));
}

/// This machine. Watches its cores for interruptions meanwhile.
fn machine() -> Machine {
    let cores = cores::allowed();
    let cache = cores.first().and_then(|&core| cores::second_level_cache(core));
    Machine {
        cores: cores.len().max(1) as u16,
        cache: cache.unwrap_or(USUAL_CACHE),
        interruptions: interruptions(&cores, WATCHED),
    }
}

impl From<TwinError> for Failure {
    fn from(error: TwinError) -> Self {
        match error {
            TwinError::Experiment(diagnostics) => Self::Experiment(Box::new(diagnostics)),
            error => Self::Other { hint: error.hint(), message: error.to_string() },
        }
    }
}
