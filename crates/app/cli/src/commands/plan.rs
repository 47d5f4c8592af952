//! `evb plan`: the cheapest network that builds the events.

use crate::{
    failure::Failure,
    folder::unwritable,
    progress::suspend,
    signals::stop_on_signals,
    simulations::HowArgs,
    terminal::{agrees, show, width},
};
use clap::Args;
use evb::{Part, Plan, TakeRecords};
use evb_planner::{CableRun, Planner, PlannerError, Store, cables};
use evb_record::{Outcome, Planning};
use std::{
    fs,
    path::{Path, PathBuf},
};

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// The planning file: requirement, parts, and what is free
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the plan, and of the cheapest network the experiment, bill of material, cabling and diagrams into this folder; it
    /// keeps the simulations, too
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the folder of --out: do not simulate again what it has
    #[arg(long, requires = "out")]
    resume: bool,
    /// Then simulate the cheapest network of each choice with one thing changed at a time: what gains 10 % of event rate, and which
    /// assumptions the result hangs on
    #[arg(long, conflicts_with = "candidate")]
    advice: bool,
    /// Print the experiment of the candidate with this number instead, to simulate it by hand
    #[arg(long, value_name = "N", conflicts_with = "out")]
    candidate: Option<u32>,
    /// With --candidate, the choice of the free keys with this number, from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "candidate")]
    choice: usize,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &PlanArgs) -> Result<Outcome, Failure> {
    let planner = Planner::load(&args.file)?;
    if let Some(candidate) = args.candidate {
        print!("{}", planner.experiment(candidate, args.choice)?.resolved());
        return Ok(Outcome::Good);
    }
    let mut store = match &args.out {
        Some(folder) => open(folder, args.resume)?,
        None => Store::default(),
    };
    let stop = stop_on_signals("the search ends; what was simulated is kept in the folder of --out")?;
    let mut simulate = |plans: &[&Plan], take: &mut dyn TakeRecords<Failure>| {
        let parts = vec![Part::Open; plans.len()];
        args.how.simulate(plans.to_vec(), parts, &stop, &|_| Ok(None), take).map(drop)
    };
    let mut planning = planner.search(&mut store, &mut simulate)?;
    if args.advice {
        planning = planner.advise(planning, &mut store, &mut simulate)?;
    }
    if args.how.json {
        suspend(|| println!("{}", serde_json::to_string(&planning).unwrap_or_default()));
    } else {
        show(&evb_report::plan_summary(&planning, width()));
    }
    if let Some(folder) = &args.out {
        write(folder, &planner, &planning)?;
    }
    Ok(planning.outcome())
}

/// Opens the folder of the simulations. Those of another search are not taken for this one, unless somebody says so.
fn open(folder: &Path, resume: bool) -> Result<Store, Failure> {
    let store = Store::open(folder)?;
    if !store.is_empty() && !resume {
        let holds = format!("{} has {} simulations", folder.display(), store.len());
        if !agrees(&format!("{holds}. Use them?")) {
            return Err(Failure::with_hint(holds, "go on with `--resume`, or choose another folder"));
        }
    }
    Ok(store)
}

fn write(folder: &Path, planner: &Planner, planning: &Planning) -> Result<(), Failure> {
    let mut files = evb_report::plan_files(planning);
    files.push(("plan.json".to_owned(), serde_json::to_string(planning).map_err(Failure::new)? + "\n"));
    if let Some((candidate, choice)) = planning.cheapest() {
        let experiment = planner.experiment(candidate.number, choice)?;
        files.push(("experiment.toml".to_owned(), experiment.resolved()));
        files.extend(experiment.plans().first().map(|plan| ("cables.csv".to_owned(), cables_csv(&cables(plan)))));
    }
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

/// One line for each cable, with the names that the simulation has for its ends.
fn cables_csv(all: &[CableRun]) -> String {
    let lines = all.iter().map(|cable| format!("{},{},{}\n", cable.from, cable.to, cable.rate.0));
    ["from,to,bits_per_s\n".to_owned()].into_iter().chain(lines).collect()
}

impl From<PlannerError> for Failure {
    fn from(error: PlannerError) -> Self {
        match error {
            PlannerError::Experiment(diagnostics) => Self::Experiment(diagnostics),
            error => Self::Other { hint: error.hint().map(str::to_owned), message: error.to_string() },
        }
    }
}
