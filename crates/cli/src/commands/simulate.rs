//! `evb simulate`: the same file in virtual time.

use crate::{ExperimentArgs, failure::Failure, progress::SimulationProgress, signals::stop_on_signals};
use clap::Args;
use evb_experiment::Plan;
use evb_record::Record;
use evb_sim::SimulateError;
use evb_sources::SourceError;
use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// The file of the records in the folder of the results.
const RECORDS: &str = "records.jsonl";

#[derive(Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Write one line for each thing that happens to a packet; of a sweep, FILE.N for point N
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write records, tables as CSV and plots as SVG into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Points of a sweep that are simulated at once; all cores by default. The results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print one JSON record, or one per point of a sweep, instead of the table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &SimulateArgs) -> Result<bool, Failure> {
    let experiment = args.experiment.load()?;
    let plans = experiment.plans();
    let stop = stop_on_signals("the simulation ends and shows what it has")?;
    if let Some(folder) = &args.out {
        prepare(folder)?;
    }
    let records = simulate_all(args, plans, &stop)?;
    match records.as_slice() {
        _ if args.json => {}
        [] => {}
        [record] if plans.len() == 1 => print!("{}", evb_report::simulation_summary(record)),
        records => print!("{}", evb_report::sweep_table(records)),
    }
    if let Some(folder) = &args.out {
        write_results(folder, &records)?;
    }
    if records.len() < plans.len() {
        eprintln!("evb: stopped after {} of {} points", records.len(), plans.len());
    }
    Ok(records.len() == plans.len() && records.iter().all(|record| record.good))
}

/// Simulates all points, several at once, and gives their records in order.
fn simulate_all(args: &SimulateArgs, plans: &[Plan], stop: &AtomicBool) -> Result<Vec<Record>, Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = args.threads.map_or(cores, NonZeroUsize::get).min(plans.len());
    let progress = SimulationProgress::new(plans.len(), args.quiet);
    let results = Mutex::new(Results::new(plans.len(), args.json));
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(index).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
            let result = simulate_one(args, plan, (plans.len() > 1).then_some(index), &progress, stop);
            if result.is_err() {
                // One failure ends the work: the others would only be thrown away.
                next.store(plans.len(), Ordering::Relaxed);
            }
            results.lock().expect("nobody panics with the results").add(index, result, &progress);
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    progress.finish();
    results.into_inner().expect("nobody panics with the results").of_points.into_iter().flatten().collect()
}

/// What has come of the points so far.
struct Results {
    of_points: Vec<Option<Result<Record, Failure>>>,
    /// The first point that is not printed yet; none when records are not printed as they come.
    unprinted: Option<usize>,
}

impl Results {
    fn new(points: usize, prints: bool) -> Self {
        Self { of_points: (0..points).map(|_| None).collect(), unprinted: prints.then_some(0) }
    }

    /// Takes a result, and prints what now is complete up to the first point that is not.
    fn add(&mut self, index: usize, result: Result<Record, Failure>, progress: &SimulationProgress) {
        self.of_points[index] = Some(result);
        let Some(unprinted) = &mut self.unprinted else { return };
        while let Some(Some(Ok(record))) = self.of_points.get(*unprinted) {
            match to_json(record) {
                Ok(line) => progress.suspend(|| println!("{line}")),
                Err(failure) => self.of_points[*unprinted] = Some(Err(failure)),
            }
            *unprinted += 1;
        }
    }
}

fn simulate_one(
    args: &SimulateArgs,
    plan: &Plan,
    point: Option<usize>,
    progress: &SimulationProgress,
    stop: &AtomicBool,
) -> Result<Record, Failure> {
    let trace = args.trace.as_deref().map(|path| open_trace(path, point)).transpose()?;
    let line = progress.begin(plan);
    let mut observe = |now: &evb_sim::Progress| {
        line.show(now);
        !stop.load(Ordering::Relaxed)
    };
    let result = evb_sim::simulate(plan, trace, &mut observe);
    line.finish();
    result.map_err(|error| match hint(&error) {
        Some(hint) => Failure::with_hint(&error, hint),
        None => Failure::new(&error),
    })
}

/// What to do about it, in the words of this command.
fn hint(error: &SimulateError) -> Option<String> {
    match error {
        SimulateError::Source(SourceError::Variable { name, .. }) => Some(format!(
            "set it, as in `{name}=/path/to/data evb simulate FILE`, or give another folder with `--set data.directory=/path/to/data`"
        )),
        SimulateError::Source(SourceError::Open { .. }) => Some(
            "data files are looked for in the experiment's data.directory; `--set data.directory=/path/to/data` changes it"
                .into(),
        ),
        SimulateError::Source(SourceError::Live) => Some(
            "a live front end has no sizes to simulate: in the file, give its readout unit a generated source, such as { type = \"fixed\", size = \"2 kB\" }"
                .into(),
        ),
        _ => error.hint(),
    }
}

fn open_trace(path: &Path, point: Option<usize>) -> Result<Box<dyn Write + Send>, Failure> {
    let path = match point {
        None => path.to_owned(),
        Some(point) => PathBuf::from(format!("{}.{point}", path.display())),
    };
    let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// Makes the folder, and sees that it can be written, before the long work.
fn prepare(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let path = folder.join(RECORDS);
    let opened = OpenOptions::new().append(true).create(true).open(&path);
    opened.map(drop).map_err(|error| unwritable(&path, &error))
}

fn write_results(folder: &Path, records: &[Record]) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    };
    let lines: Result<Vec<String>, Failure> = records.iter().map(to_json).collect();
    let lines = lines?.into_iter().map(|line| line + "\n");
    write(RECORDS, &lines.collect::<String>())?;
    write("points.csv", &evb_report::csv(records))?;
    write("links.csv", &evb_report::links_csv(records))?;
    for plot in evb_report::plots(records) {
        write(&format!("{}.svg", plot.name), &plot.svg)?;
    }
    Ok(())
}

fn to_json(record: &Record) -> Result<String, Failure> {
    serde_json::to_string(record).map_err(Failure::new)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::with_hint(format!("cannot write {}: {error}", path.display()), "check the path and the free space")
}
