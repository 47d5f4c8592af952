//! `evb simulate`: the same file in virtual time.

use crate::{
    ExperimentArgs,
    failure::Failure,
    folder::{prepare, unwritable, write_table},
    output,
    progress::suspend,
    signals::stop_on_signals,
    simulations::HowArgs,
    terminal::{show, width},
};
use clap::Args;
use evb::Record;
use evb_record::Outcome;
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

/// The file of the records in the folder of the results.
const RECORDS: &str = "records.jsonl";

#[derive(Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Take the network from this file instead of the experiment's `network` table, such as one from `evb bench --fit`
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// Write one line for each thing that happens to a packet; of a sweep, FILE.N for point N
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write records, tables as CSV and Parquet, and plots as SVG into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &SimulateArgs) -> Result<Outcome, Failure> {
    let experiment = match &args.network {
        Some(network) => args.experiment.load_on(network)?,
        None => args.experiment.load()?,
    };
    let plans = experiment.plans();
    let stop = stop_on_signals("the simulation ends and shows what it has")?;
    if let Some(folder) = &args.out {
        prepare(folder, RECORDS)?;
    }
    let trace = |index: usize| {
        let point = (plans.len() > 1).then_some(index);
        args.trace.as_deref().map(|path| open_trace(path, point)).transpose()
    };
    let mut print = |record: &Record| {
        let line = if args.how.json { to_json(record)? } else { return Ok(()) };
        suspend(|| println!("{line}"));
        output::check()
    };
    let records = args.how.simulate(plans.iter().collect(), &stop, &trace, &mut print)?;
    match records.as_slice() {
        _ if args.how.json => {}
        [] => {}
        [record] if plans.len() == 1 => show(&evb_report::simulation_summary(record, width())),
        records => show(&evb_report::sweep_table(records, width())),
    }
    if let Some(folder) = &args.out {
        write_results(folder, &records)?;
    }
    if records.len() < plans.len() {
        eprintln!("evb: stopped after {} of {} points", records.len(), plans.len());
    }
    let all = (records.len() == plans.len()).into();
    Ok(Outcome::worst(records.iter().map(Record::outcome).chain([all])))
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
    let lines = lines?.into_iter().map(|line| line + "\n");
    write(RECORDS, &lines.collect::<String>())?;
    write_table(folder, "points", &evb_report::csv(records))?;
    write_table(folder, "links", &evb_report::links_csv(records))?;
    for plot in evb_report::plots(records) {
        write(&format!("{}.svg", plot.name), &plot.svg)?;
    }
    Ok(())
}

fn to_json(record: &Record) -> Result<String, Failure> {
    serde_json::to_string(record).map_err(Failure::new)
}
