//! Many simulations, several at once.

use crate::{
    failure::Failure,
    progress::{ProgressArgs, SimulationProgress},
};
use clap::Args;
use evb_experiment::Plan;
use evb_record::Record;
use evb_sim::SimulateError;
use evb_sources::SourceError;
use std::{
    io::Write,
    num::NonZeroUsize,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// How simulations go on, and what they print.
#[derive(Args)]
pub(crate) struct HowArgs {
    /// Simulations that go on at once; one for each core by default. The results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print JSON records, one on a line, instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// What is to be simulated.
pub(crate) struct Simulations<'a> {
    pub(crate) plans: Vec<&'a Plan>,
    pub(crate) how: &'a HowArgs,
    /// Ends all that is going on, and begins nothing new.
    pub(crate) stop: &'a AtomicBool,
}

/// Opens the trace of one plan.
pub(crate) type OpenTrace<'a> = dyn Fn(usize) -> Result<Option<Box<dyn Write + Send>>, Failure> + Sync + 'a;

/// Shows a record. The records come in the order of their plans, each as soon as all before it are there.
pub(crate) type Show<'a> = dyn FnMut(&Record) -> Result<(), Failure> + Send + 'a;

impl Simulations<'_> {
    /// Simulates all, and gives their records in order; fewer than there are plans when it was stopped.
    pub(crate) fn run(&self, trace: &OpenTrace<'_>, show: &mut Show<'_>) -> Result<Vec<Record>, Failure> {
        let plans = self.plans.len();
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.how.threads.map_or(cores, NonZeroUsize::get).min(plans);
        let progress = SimulationProgress::new(plans, self.how.progress);
        let results = Mutex::new(Results { of_plans: (0..plans).map(|_| None).collect(), shown: 0, show });
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = self.plans.get(index).filter(|_| !self.stop.load(Ordering::Relaxed)) else { return };
                let result = trace(index).and_then(|trace| self.simulate(plan, trace, &progress));
                if result.is_err() {
                    // One failure ends the work: the others would only be thrown away.
                    next.store(plans, Ordering::Relaxed);
                }
                results.lock().expect("nobody panics with the results").add(index, result);
            }
        };
        thread::scope(|scope| {
            // Fewer threads do the same work: the system may give no more.
            let _enough = (1..threads).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, work).map(drop));
            work();
        });
        drop(progress);
        results.into_inner().expect("nobody panics with the results").of_plans.into_iter().flatten().collect()
    }

    fn simulate(
        &self,
        plan: &Plan,
        trace: Option<Box<dyn Write + Send>>,
        progress: &SimulationProgress,
    ) -> Result<Record, Failure> {
        let line = progress.begin(plan);
        let mut observe = |now: &evb_sim::Progress| {
            line.show(now);
            !self.stop.load(Ordering::Relaxed)
        };
        let result = evb_sim::simulate(plan, trace, &mut observe);
        drop(line);
        result.map_err(|error| match hint(&error) {
            Some(hint) => Failure::with_hint(&error, hint),
            None => Failure::new(&error),
        })
    }
}

/// What has come of the plans so far.
struct Results<'a, 'b> {
    of_plans: Vec<Option<Result<Record, Failure>>>,
    /// How many have been shown.
    shown: usize,
    show: &'a mut Show<'b>,
}

impl Results<'_, '_> {
    /// Takes a result, and shows what now is complete up to the first that is not.
    fn add(&mut self, index: usize, result: Result<Record, Failure>) {
        self.of_plans[index] = Some(result);
        while let Some(Some(Ok(record))) = self.of_plans.get(self.shown) {
            if let Err(failure) = (self.show)(record) {
                self.of_plans[self.shown] = Some(Err(failure));
            }
            self.shown += 1;
        }
    }
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
