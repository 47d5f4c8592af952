//! `evb simulate`: the same file in virtual time.

use crate::{
    ExperimentArgs,
    failure::Failure,
    folder::unwritable,
    output,
    progress::suspend,
    results::{FolderArgs, PlotArgs, UntilArgs, write_results},
    signals::stop_on_signals,
    simulations::HowArgs,
    terminal::{show, width},
};
use clap::Args;
use evb::{Part, Record, Shard, SweepFolder, TakeRecords, Until};
use evb_record::{Outcome, RecordKind};
use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

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
    #[command(flatten)]
    folder: FolderArgs,
    /// Simulate one of several parts of the sweep, such as 3/10, for several machines; `evb sweep merge` joins their folders
    #[arg(long, value_name = "PART", conflicts_with = "until")]
    points: Option<Shard>,
    #[command(flatten)]
    until: UntilArgs,
    #[command(flatten)]
    plots: PlotArgs,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &SimulateArgs) -> Result<Outcome, Failure> {
    let experiment = match &args.network {
        Some(network) => args.experiment.load_on(network)?,
        None => args.experiment.load()?,
    };
    let plans = experiment.plans();
    args.plots.check(plans)?;
    let (folder, known) = args.folder.open(&experiment, RecordKind::Simulation)?;
    let stop = stop_on_signals("the simulation ends and shows what it has")?;
    let parts: Vec<_> = known.into_iter().enumerate().map(|(index, record)| part(args, index, record)).collect();
    let trace = |index: usize| {
        let point = (plans.len() > 1).then_some(index);
        args.trace.as_deref().map(|path| open_trace(path, point)).transpose()
    };
    let in_part: Vec<_> = parts.iter().map(|part| !matches!(part, Part::LeftOut)).collect();
    let mut taker = Taker { json: args.how.json, folder, until: args.until.of(plans) };
    let records = args.how.simulate(plans.iter().collect(), parts, &stop, &trace, &mut taker)?;
    let wanted = (0..plans.len()).filter(|&index| in_part[index] && taker.wants(index)).count();
    match records.as_slice() {
        _ if args.how.json => {}
        [] => {}
        [record] if plans.len() == 1 => show(&evb_report::simulation_summary(record, width())),
        records => show(&evb_report::sweep_table(records, width())),
    }
    if let (Some(path), Some(folder)) = (&args.folder.out, taker.folder) {
        folder.finish()?;
        write_results(path, &records, &args.plots)?;
    }
    if records.len() < wanted {
        let resume = if args.folder.out.is_some() { "; go on with --resume" } else { "" };
        eprintln!("evb: stopped after {} of {wanted} points{resume}", records.len());
    }
    let all = (records.len() == wanted).into();
    Ok(Outcome::worst(records.iter().map(Record::outcome).chain([all])))
}

fn part(args: &SimulateArgs, index: usize, known: Option<Record>) -> Part {
    match known {
        Some(record) => Part::Known(Box::new(record)),
        None if args.points.is_some_and(|shard| !shard.has(index)) => Part::LeftOut,
        None => Part::Open,
    }
}

/// Stores each record when it is there, and prints them in order.
struct Taker {
    json: bool,
    folder: Option<SweepFolder>,
    until: Option<Until>,
}

impl Taker {
    fn note(&mut self, index: usize, record: &Record) {
        self.until.iter_mut().for_each(|until| until.note(index, record));
    }
}

impl TakeRecords<Failure> for Taker {
    fn wants(&self, index: usize) -> bool {
        self.until.as_ref().is_none_or(|until| until.wants(index))
    }

    fn known(&mut self, index: usize, record: &Record) {
        self.note(index, record);
    }

    fn ended(&mut self, index: usize, record: &Record) -> Result<(), Failure> {
        self.note(index, record);
        let Some(folder) = &mut self.folder else { return Ok(()) };
        Ok(folder.keep(index, record)?)
    }

    fn in_order(&mut self, record: &Record) -> Result<(), Failure> {
        if !self.json {
            return Ok(());
        }
        let line = serde_json::to_string(record).map_err(Failure::new)?;
        suspend(|| println!("{line}"));
        output::check()
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
