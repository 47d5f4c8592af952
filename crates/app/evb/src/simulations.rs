//! Many simulations, several at once.

use evb_experiment::Plan;
use evb_record::Record;
use evb_sim::{Progress, SimulateError, simulate};
use std::{
    io::Write,
    num::NonZeroUsize,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
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

/// What is done with records. `()` does nothing with them.
pub trait TakeRecords<E>: Send {
    /// True if the plan with this index is needed. A plan that is not, by the records so far, is not begun; in the end its record
    /// is left out.
    fn wants(&self, _index: usize) -> bool {
        true
    }

    /// Takes a new record as soon as its simulation has ended, with the index of its plan.
    ///
    /// # Errors
    /// Those of the caller. They end the work.
    fn ended(&mut self, index: usize, record: &Record) -> Result<(), E>;

    /// Takes a known record, before the first simulation.
    fn known(&mut self, _index: usize, _record: &Record) {}

    /// Takes a record, new or known. The records come in the order of their plans, each as soon as all before it are there.
    ///
    /// # Errors
    /// Those of the caller. They end the work.
    fn in_order(&mut self, record: &Record) -> Result<(), E>;
}

impl<E> TakeRecords<E> for () {
    fn ended(&mut self, _: usize, _: &Record) -> Result<(), E> {
        Ok(())
    }

    fn in_order(&mut self, _: &Record) -> Result<(), E> {
        Ok(())
    }
}

/// The part that a plan has in the work.
#[derive(Clone, Debug)]
pub enum Part {
    /// It is simulated.
    Open,
    /// Its record is there already.
    Known(Box<Record>),
    /// It is left out, such as one that another machine simulates.
    LeftOut,
}

impl<E: From<SimulateError> + Send> Simulations<'_, E> {
    /// Simulates the open plans, and returns all records in the order of the plans, known ones included. There are fewer
    /// if it was stopped.
    ///
    /// # Errors
    /// The first error of a simulation, of its trace, or of `take`.
    ///
    /// # Panics
    /// There are not as many parts as plans.
    pub fn run(&self, parts: Vec<Part>, take: &mut dyn TakeRecords<E>) -> Result<Vec<Record>, E> {
        assert_eq!(parts.len(), self.plans.len(), "each plan has a part");
        let open = parts.iter().filter(|part| matches!(part, Part::Open)).count();
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let all = self.threads.map_or(cores, NonZeroUsize::get);
        let for_each = NonZeroUsize::new(all / open.max(1)).unwrap_or(NonZeroUsize::MIN);
        let mut results = Results::new(parts, take);
        results.pass_on();
        let results = Mutex::new(results);
        let lock = || results.lock().expect("no thread panics with the results");
        let work = || {
            while !self.is_stopped() {
                let Some(index) = lock().begin() else { return };
                let result = (self.trace)(index).and_then(|trace| self.simulate(self.plans[index], for_each, trace));
                lock().add(index, result);
            }
        };
        thread::scope(|scope| {
            // Fewer threads do the same work: the system may have no more.
            let _enough =
                (1..all.min(open)).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, work).map(drop));
            work();
        });
        results.into_inner().expect("no thread panics with the results").into_records()
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
struct Results<'a, E> {
    of_plans: Vec<PlanResult<E>>,
    /// Number of plans that were begun or need no work.
    begun: usize,
    /// Number of plans whose records were given away in order.
    passed: usize,
    take: &'a mut dyn TakeRecords<E>,
}

enum PlanResult<E> {
    Open,
    LeftOut,
    There(Box<Record>),
    Failed(E),
}

impl<'a, E> Results<'a, E> {
    fn new(parts: Vec<Part>, take: &'a mut dyn TakeRecords<E>) -> Self {
        for (index, part) in parts.iter().enumerate() {
            if let Part::Known(record) = part {
                take.known(index, record);
            }
        }
        let result = |part| match part {
            Part::Open => PlanResult::Open,
            Part::LeftOut => PlanResult::LeftOut,
            Part::Known(record) => PlanResult::There(record),
        };
        Self { of_plans: parts.into_iter().map(result).collect(), begun: 0, passed: 0, take }
    }

    /// The next plan to simulate.
    fn begin(&mut self) -> Option<usize> {
        let open = |index: &usize| matches!(self.of_plans[*index], PlanResult::Open) && self.take.wants(*index);
        let next = (self.begun..self.of_plans.len()).find(open);
        self.begun = next.map_or(self.of_plans.len(), |index| index + 1);
        next
    }

    /// Adds a result, unless it is no longer needed. One failure ends the work: the other results would only be thrown away.
    fn add(&mut self, index: usize, result: Result<Record, E>) {
        if !self.take.wants(index) {
            self.of_plans[index] = PlanResult::LeftOut;
            return self.pass_on();
        }
        let result = result.and_then(|record| self.take.ended(index, &record).map(|()| record));
        self.of_plans[index] = result.map_or_else(PlanResult::Failed, |record| PlanResult::There(Box::new(record)));
        if matches!(self.of_plans[index], PlanResult::Failed(_)) {
            self.begun = self.of_plans.len();
        }
        self.pass_on();
    }

    /// Passes on the records that are complete up to the first missing one, and leaves out what is not needed.
    fn pass_on(&mut self) {
        while let Some(result) = self.of_plans.get_mut(self.passed) {
            if !matches!(result, PlanResult::Failed(_)) && !self.take.wants(self.passed) {
                *result = PlanResult::LeftOut;
            }
            match result {
                PlanResult::Open | PlanResult::Failed(_) => return,
                PlanResult::LeftOut => {}
                PlanResult::There(record) => {
                    if let Err(error) = self.take.in_order(record) {
                        *result = PlanResult::Failed(error);
                        self.begun = self.of_plans.len();
                    }
                }
            }
            self.passed += 1;
        }
    }

    fn into_records(self) -> Result<Vec<Record>, E> {
        let record = |result| match result {
            PlanResult::Open | PlanResult::LeftOut => None,
            PlanResult::There(record) => Some(Ok(*record)),
            PlanResult::Failed(error) => Some(Err(error)),
        };
        self.of_plans.into_iter().filter_map(record).collect()
    }
}
