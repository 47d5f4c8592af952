//! `evb sweep submit` and `evb sweep collect`: a sweep as a job of a cluster.

use super::draw;
use crate::{ExperimentArgs, failure::Failure, progress::say, results::PlotArgs, signals::stop_on_signals};
use clap::Args;
use evb::{ArrayJob, OpenPart, SlurmJob, TaskState};
use evb_record::Outcome;
use std::{
    collections::BTreeMap,
    env,
    num::NonZeroUsize,
    path::{Path, PathBuf, absolute},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Time between the first looks at a job, and the longest: a cluster has many users, and looks are work for it.
const LOOKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Number of looks in turn that may fail, such as when the cluster is restarted.
const FAILED_LOOKS: u32 = 20;
/// Interval of looks at signals.
const SIGNALS: Duration = Duration::from_millis(100);

/// The states of tasks by their numbers.
type States = BTreeMap<usize, TaskState>;

#[derive(Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Submit to Slurm, by `sbatch`
    #[arg(long, required = true)]
    slurm: bool,
    /// Number of parts, each a task of the job; ten by default, or as many as there are points
    #[arg(long, value_name = "N")]
    parts: Option<NonZeroUsize>,
    /// Write the parts and later the whole into this folder, which all machines must see; by default named as the file. If it has
    /// parts already, only those with missing points are submitted
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only write the batch script, and print how to submit it
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Wait for the end and join the parts, as `evb sweep collect` does
    #[arg(long)]
    wait: bool,
    /// Options of `sbatch`, such as --partition=short --time=1:00:00 --cpus-per-task=4
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

#[derive(Args)]
pub(crate) struct CollectArgs {
    /// The folder of `evb sweep submit`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    plots: PlotArgs,
}

pub(super) fn submit(args: &SubmitArgs) -> Result<Outcome, Failure> {
    // The tasks read another file, from which its relative paths would start.
    let file = absolute(&args.experiment.file)?;
    let experiment = ExperimentArgs { file, ..args.experiment.clone() }.load()?;
    let folder = args.out.clone().or_else(|| args.experiment.file.file_stem().map(PathBuf::from));
    let folder = folder.ok_or_else(|| Failure::with_hint("no folder is named", "name one with --out"))?;
    let mut job = ArrayJob::prepare(&folder, experiment, args.parts)?;
    refuse_if_running(&folder, &job)?;
    let open = job.open_parts()?;
    if open.is_empty() {
        let what = format!("{}: all points of all parts are there", folder.display());
        return Err(Failure::with_hint(what, format!("join them: {}", collecting(&folder))));
    }
    let script = job.write_script(&env::current_exe()?, &open)?;
    if args.dry_run {
        println!("{}", SlurmJob::command_line(&script, &args.options));
        return Ok(Outcome::Good);
    }
    let name = SlurmJob::submit(&script, &args.options)?;
    job.note(&name)?;
    println!("{name}");
    let missing: usize = open.iter().map(|open| open.missing).sum();
    say(&format!("job {name} simulates {missing} points in {} of {} parts", open.len(), job.parts()));
    if args.wait {
        return collect_from(&folder, &job, &PlotArgs::default());
    }
    say(&format!("collect them: {}", collecting(&folder)));
    Ok(Outcome::Good)
}

/// Refuses a second job that would simulate the same points.
fn refuse_if_running(folder: &Path, job: &ArrayJob) -> Result<(), Failure> {
    let Some(name) = job.job() else { return Ok(()) };
    if SlurmJob::named(name).look(&mut States::new())? {
        return Ok(());
    }
    let hint = format!("wait for it: {}; or end it: `scancel {name}`", collecting(folder));
    Err(Failure::with_hint(format!("job {name} still simulates the parts of {}", folder.display()), hint))
}

/// The command that collects.
fn collecting(folder: &Path) -> String {
    format!("`evb sweep collect {}`", folder.display())
}

pub(super) fn collect(args: &CollectArgs) -> Result<Outcome, Failure> {
    let job = ArrayJob::read(&args.folder)?;
    args.plots.check(job.experiment().plans())?;
    collect_from(&args.folder, &job, &args.plots)
}

fn collect_from(folder: &Path, job: &ArrayJob, plots: &PlotArgs) -> Result<Outcome, Failure> {
    if !job.is_collected()? {
        let states = match job.job() {
            Some(name) => wait(folder, name)?,
            None => States::new(),
        };
        let open = job.open_parts()?;
        if !open.is_empty() {
            return Err(missing(folder, job.parts(), &open, &states));
        }
        job.collect()?;
    }
    draw(folder, None, plots)
}

/// Waits for the end of all tasks. Returns their last states, as far as they are known.
fn wait(folder: &Path, name: &str) -> Result<States, Failure> {
    let (job, stop) = (SlurmJob::named(name), stop_on_signals("the job goes on")?);
    let (mut states, mut told, mut failed, mut pause) = (States::new(), String::new(), 0, LOOKS[0]);
    loop {
        let now = match job.look(&mut states) {
            Ok(true) => return Ok(states),
            Ok(false) => {
                failed = 0;
                in_words(&states)
            }
            Err(error) if failed == FAILED_LOOKS => return Err(error.into()),
            Err(error) => {
                failed += 1;
                error.to_string()
            }
        };
        if now != told {
            say(&format!("job {name}: {now}"));
            told = now;
        }
        if !sleep(pause, &stop) {
            let hint = format!("collect them later: {}; or end it: `scancel {name}`", collecting(folder));
            return Err(Failure::with_hint(format!("job {name} goes on, and its parts are not collected"), hint));
        }
        pause = (pause * 2).min(LOOKS[1]);
    }
}

/// The number of tasks in each state, such as `4 PENDING (Resources), 2 RUNNING`.
fn in_words(states: &States) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for state in states.values() {
        *counts.entry(state.to_string()).or_default() += 1;
    }
    counts.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

/// Sleeps; false if a signal came meanwhile.
fn sleep(time: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        thread::sleep(SIGNALS.min(time));
    }
    !stop.load(Ordering::Relaxed)
}

/// The failure of parts whose tasks have ended without all points.
fn missing(folder: &Path, parts: usize, open: &[OpenPart], states: &States) -> Failure {
    let told = open.iter().map(|OpenPart { part, missing, points, log }| {
        let state = states.get(&part.number()).filter(|state| state.is_over());
        let state = state.map_or_else(String::new, |state| format!(", {state}"));
        format!("\n  part {part}: {missing} of {points} points are missing{state}; see {}", log.display())
    });
    let all = told.collect::<String>();
    let message = format!("{} of {parts} parts of {} are not whole:{all}", open.len(), folder.display());
    Failure::with_hint(
        message,
        "the same `evb sweep submit` simulates what is missing; `evb sweep merge --partial` joins what is there",
    )
}
