//! `evb sweep`: folders of sweeps after their points were simulated.

mod cluster;

use crate::{
    failure::Failure,
    results::{PlotArgs, UntilArgs, write_results},
    terminal::{show, width},
};
use clap::{Args, Subcommand};
use cluster::{CollectArgs, SubmitArgs};
use evb::{Record, StoredSweep, merge};
use evb_record::Outcome;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(crate) enum SweepCommand {
    /// Join the folders of the parts of a sweep, which `evb simulate --points` made
    Merge(MergeArgs),
    /// Make the tables and plots of a folder again, and show its table
    Draw(DrawArgs),
    /// Simulate a sweep on a cluster: a job whose tasks simulate a part of the points each
    Submit(SubmitArgs),
    /// Wait for the job of `evb sweep submit`, and join its parts
    Collect(CollectArgs),
}

#[derive(Args)]
pub(crate) struct MergeArgs {
    /// The folders of the parts
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Write records, tables and plots into this folder, as `evb simulate --out` does
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Accept that points are missing
    #[arg(long)]
    partial: bool,
    #[command(flatten)]
    plots: PlotArgs,
}

#[derive(Args)]
pub(crate) struct DrawArgs {
    /// The folder of `evb simulate --out` or `evb sweep merge`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    until: UntilArgs,
    #[command(flatten)]
    plots: PlotArgs,
}

pub(crate) fn run(command: &SweepCommand) -> Result<Outcome, Failure> {
    match command {
        SweepCommand::Merge(args) => {
            merge(&args.parts, &args.out, args.partial)?;
            draw(&args.out, None, &args.plots)
        }
        SweepCommand::Draw(args) => draw(&args.folder, Some(&args.until), &args.plots),
        SweepCommand::Submit(args) => cluster::submit(args),
        SweepCommand::Collect(args) => cluster::collect(args),
    }
}

/// Makes tables and plots of what a folder has.
fn draw(folder: &Path, until: Option<&UntilArgs>, plots: &PlotArgs) -> Result<Outcome, Failure> {
    let stored = StoredSweep::<Record>::read(folder)?.ok_or_else(|| {
        let what = format!("{}: there are no records", folder.display());
        Failure::with_hint(what, "give the folder of `evb simulate --out` or `evb sweep merge`")
    })?;
    let plans = stored.experiment.plans();
    plots.check(plans)?;
    let mut until = until.and_then(|until| until.of(plans));
    for (index, record) in stored.finished() {
        until.iter_mut().for_each(|until| until.note(index, record));
    }
    let wants = |index: usize| until.as_ref().is_none_or(|until| until.wants(index));
    let all = (0..plans.len()).filter(|&index| wants(index)).count();
    let there = (0..).zip(stored.records).filter(|(index, _)| wants(*index));
    let records: Vec<Record> = there.filter_map(|(_, record)| record).collect();
    write_results(folder, &records, plots)?;
    show(&evb_report::sweep_table(&records, width()));
    if records.len() < all {
        eprintln!("evb: {} of {all} points are there", records.len());
    }
    Ok(Outcome::worst(records.iter().map(Record::outcome).chain([(records.len() == all).into()])))
}
