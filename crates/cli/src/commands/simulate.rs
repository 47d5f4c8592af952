//! `evb simulate`: the same file in virtual time.

use crate::{ExperimentArgs, failure::Failure, progress::SimulationProgress, signals::stop_on_signals};
use clap::Args;
use evb_experiment::Plan;
use evb_record::Record;
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

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
    let stop = stop_on_signals("the simulation ends and shows what it has")?;
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    let records = simulate_all(args, experiment.plans(), &stop)?;
    match (args.json, records.as_slice()) {
        (true, records) => {
            for record in records {
                println!("{}", to_json(record)?);
            }
        }
        (false, [record]) => print!("{}", evb_report::simulation_summary(record)),
        (false, records) => print!("{}", evb_report::sweep_table(records)),
    }
    if let Some(folder) = &args.out {
        write_results(folder, &records)?;
    }
    Ok(records.iter().all(|record| record.good))
}

/// Simulates all points, several at once, and gives their records in order.
fn simulate_all(args: &SimulateArgs, plans: &[Plan], stop: &AtomicBool) -> Result<Vec<Record>, Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = args.threads.map_or(cores, NonZeroUsize::get).min(plans.len());
    let progress = SimulationProgress::new(plans.len(), args.quiet);
    let results: Vec<_> = plans.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(index).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
            let result = simulate_one(args, plan, (plans.len() > 1).then_some(index), &progress, stop);
            let failed = result.is_err();
            *results[index].lock().expect("nobody panics with a result") = Some(result);
            if failed {
                // One failure ends the work: the others would only be thrown away.
                next.store(plans.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    progress.finish();
    let results = results.into_iter().filter_map(|result| result.into_inner().expect("nobody panics with a result"));
    results.collect()
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
    result.map_err(|error| match error.hint() {
        Some(hint) => Failure::with_hint(&error, hint),
        None => Failure::new(&error),
    })
}

fn open_trace(path: &Path, point: Option<usize>) -> Result<Box<dyn Write + Send>, Failure> {
    let path = match point {
        None => path.to_owned(),
        Some(point) => PathBuf::from(format!("{}.{point}", path.display())),
    };
    let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn write_results(folder: &Path, records: &[Record]) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    };
    let lines: Result<Vec<String>, Failure> = records.iter().map(to_json).collect();
    write("records.jsonl", &(lines?.join("\n") + "\n"))?;
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
