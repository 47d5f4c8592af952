//! Many simulations, several at once.

use evb_experiment::Plan;
use evb_record::Record;
use evb_sim::{Progress, SimulateError, simulate};
use std::{
    io::Write,
    num::NonZeroUsize,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// The simulations of several plans, such as the points of a sweep. `E` is the error of the caller.
pub struct Simulations<'a, E> {
    /// The plans, in the order of their records.
    pub plans: Vec<&'a Plan>,
    /// Number of threads, one for each core by default: for several simulations at once, and if there are more threads than
    /// plans, for parts of each simulation. The records do not depend on it.
    pub threads: Option<NonZeroUsize>,
    /// Ends the simulations that are going on, and begins no more.
    pub stop: &'a AtomicBool,
    /// Opens the trace of the plan with this index.
    pub trace: &'a OpenTrace<'a, E>,
    /// Begins to watch the simulation of a plan. The watcher is dropped when the simulation has ended.
    pub begin: &'a Begin<'a>,
}

/// Opens the trace of one plan, if it has one.
pub type OpenTrace<'a, E> = dyn Fn(usize) -> Result<Option<Box<dyn Write + Send>>, E> + Sync + 'a;

/// Makes the receiver of the progress of one simulation.
pub type Begin<'a> = dyn Fn(&Plan) -> Box<dyn FnMut(&Progress) + 'a> + Sync + 'a;

/// Takes a record. The records come in the order of their plans, each as soon as all before it are there.
pub type Take<'a, E> = dyn FnMut(&Record) -> Result<(), E> + Send + 'a;

impl<E: From<SimulateError> + Send> Simulations<'_, E> {
    /// Simulates all plans and returns their records in order. There are fewer records than plans if it was stopped.
    ///
    /// # Errors
    /// The first error of a simulation, of its trace, or of `take`.
    pub fn run(&self, take: &mut Take<'_, E>) -> Result<Vec<Record>, E> {
        let plans = self.plans.len();
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let all = self.threads.map_or(cores, NonZeroUsize::get);
        let threads = all.min(plans);
        let for_each = NonZeroUsize::new(all / plans.max(1)).unwrap_or(NonZeroUsize::MIN);
        let results = Mutex::new(Results { of_plans: (0..plans).map(|_| None).collect(), taken: 0, take });
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = self.plans.get(index).filter(|_| !self.is_stopped()) else { return };
                let result = (self.trace)(index).and_then(|trace| self.simulate(plan, for_each, trace));
                if result.is_err() {
                    // One failure ends the work: the others would only be thrown away.
                    next.store(plans, Ordering::Relaxed);
                }
                results.lock().expect("no thread panics with the results").add(index, result);
            }
        };
        thread::scope(|scope| {
            // Fewer threads do the same work: the system may have no more.
            let _enough = (1..threads).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, work).map(drop));
            work();
        });
        results.into_inner().expect("no thread panics with the results").of_plans.into_iter().flatten().collect()
    }

    fn simulate(&self, plan: &Plan, threads: NonZeroUsize, trace: Option<Box<dyn Write + Send>>) -> Result<Record, E> {
        let mut watch = (self.begin)(plan);
        let mut observe = |now: &Progress| {
            watch(now);
            !self.is_stopped()
        };
        tracing::info!(experiment = plan.name, point = ?plan.sweep, "simulation begins");
        let record = simulate(plan, threads, trace, &mut observe)?;
        tracing::info!(experiment = plan.name, built = record.events.built, "simulation ends");
        Ok(record)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The results so far.
struct Results<'a, 'b, E> {
    of_plans: Vec<Option<Result<Record, E>>>,
    /// Number of records that were given away.
    taken: usize,
    take: &'a mut Take<'b, E>,
}

impl<E> Results<'_, '_, E> {
    /// Adds a result, and passes on those that are complete up to the first missing one.
    fn add(&mut self, index: usize, result: Result<Record, E>) {
        self.of_plans[index] = Some(result);
        while let Some(Some(Ok(record))) = self.of_plans.get(self.taken) {
            if let Err(error) = (self.take)(record) {
                self.of_plans[self.taken] = Some(Err(error));
            }
            self.taken += 1;
        }
    }
}
