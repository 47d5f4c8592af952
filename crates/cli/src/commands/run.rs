//! `evb run`: build events for real.

use crate::{ExperimentArgs, failure::Failure, progress::RunProgress};
use clap::Args;
use evb_experiment::{Experiment, Plan};
use evb_record::Record;
use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Print one JSON record, or one per point of a sweep, instead of the table
    #[arg(long)]
    json: bool,
    /// Show neither progress nor notes
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &RunArgs) -> Result<bool, Failure> {
    let experiment = args.experiment.load()?;
    let stop = stop_on_signals()?;
    let mut all_good = true;
    for (index, plan) in experiment.plans().iter().enumerate() {
        let record = run_plan(args, &experiment, index, plan, &stop)?;
        all_good &= record.good;
        match args.json {
            true => println!("{}", serde_json::to_string(&record).map_err(Failure::new)?),
            false => print!("{}", evb_report::run_summary(&record)),
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(all_good)
}

fn run_plan(args: &RunArgs, experiment: &Experiment, index: usize, plan: &Plan, stop: &AtomicBool) -> Result<Record, Failure> {
    let text = experiment.resolved_at(index).unwrap_or_default();
    let mut progress = RunProgress::new(plan, stop, args.quiet);
    let record = evb_node::run_threads(plan, &text, &mut progress);
    progress.finish();
    Ok(record?)
}

/// The first Ctrl-C asks the run to drain, the second ends it at once.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        eprintln!("evb: stopping; the run drains. Press Ctrl-C again to leave at once.");
    };
    ctrlc::set_handler(handler).map_err(Failure::new)?;
    Ok(stop)
}
