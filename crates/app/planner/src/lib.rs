//! The planner: the cheapest network that builds the events of an experiment, and why a cheaper one does not.
//!
//! 1. [`Requirements`] say what is asked of the network, and [`Parts`] what it can be made of.
//! 2. All trees of switches whose ports suffice are candidates.
//! 3. Bounds exclude those whose cables cannot carry the bytes, with and without failures.
//! 4. Simulations of the rest show which are enough: of the networks with the same parts, the one with the fewest uplinks is
//!    searched, first by short simulations and then by longer ones, and with each failure that is to be survived. A network that
//!    is not enough excludes all that have no more in any respect, so once one has failed, strong ones are simulated first.
//! 5. The result is the front: the networks that no other one beats in cost, power and load at once; and for every other one
//!    the reason why it is not there.
//! 6. If it is asked for, the cheapest networks are simulated with one thing changed at a time: what gains a higher rate, and which
//!    assumption the result hangs on.
//!
//! The plan of a file depends on its seed alone, not on the machine.

mod advice;
mod assumptions;
mod base;
mod bounds;
mod cabling;
mod candidate;
mod changes;
mod demand;
mod error;
mod file;
mod parts;
mod planning;
mod problem;
mod range;
mod requirements;
mod search;
mod simulations;
mod store;
mod strength;
mod trial;

pub use cabling::{CableRun, cables};
pub use error::PlannerError;
pub use parts::{Cable, Interface, Parts, PortGroup, Switch};
pub use range::Range;
pub use requirements::{Effort, Failure, Freedom, Goal, Requirements, Site};
pub use store::{Store, TRIALS};
pub use trial::Trial;

use evb::{Plan, TakeRecords};
use evb_experiment::Experiment;
use evb_record::Planning;
use problem::Problem;
use search::Search;
use simulations::{Case, Simulator};
use std::path::Path;

/// Simulates plans, and gives each record away as soon as it is there; not all of them if it was stopped.
pub type Simulate<'a, E> = dyn FnMut(&[&Plan], &mut dyn TakeRecords<E>) -> Result<(), E> + 'a;

/// A planner with its question.
pub struct Planner {
    requirements: Requirements,
    parts: Parts,
}

impl Planner {
    /// Reads a planning file and its parts.
    ///
    /// # Errors
    /// One of the files cannot be read, or has impossible values.
    pub fn load(path: &Path) -> Result<Self, PlannerError> {
        let requirements = Requirements::load(path)?;
        let mut parts = Parts::load(&requirements.parts)?;
        parts.keep(&requirements.freedom, &requirements.parts)?;
        Ok(Self { requirements, parts })
    }

    /// Searches. What the store has is not simulated again.
    ///
    /// # Errors
    /// The experiment is not valid, no network can be made of the parts, or one of `simulate`.
    pub fn search<E: From<PlannerError>>(
        &self,
        store: &mut Store,
        simulate: &mut Simulate<'_, E>,
    ) -> Result<Planning, E> {
        let problem = Problem::new(&self.requirements, &self.parts)?;
        let planning = Search::new(&problem, Simulator::new(&problem, store, simulate)).run()?;
        Ok(Planning { parts_date: self.parts.date.clone(), currency: self.parts.currency.clone(), ..planning })
    }

    /// Asks what to change about the cheapest network of each choice, and what the plan hangs on: the plan with this advice. What the
    /// store has is not simulated again.
    ///
    /// # Errors
    /// The experiment is not valid, the plan is not one of this file, or one of `simulate`.
    pub fn advise<E: From<PlannerError>>(
        &self,
        planning: Planning,
        store: &mut Store,
        simulate: &mut Simulate<'_, E>,
    ) -> Result<Planning, E> {
        let problem = Problem::new(&self.requirements, &self.parts)?;
        if problem.records != planning.candidates {
            let why = "the plan is not one of this file and its parts";
            return Err(PlannerError::file(&self.requirements.experiment, why, "search again").into());
        }
        advice::advise(&problem, planning, Simulator::new(&problem, store, simulate))
    }

    /// The experiment of a candidate by its number, for one choice of the free keys by its index, at the required load.
    ///
    /// # Errors
    /// The experiment is not valid, or there is no such candidate or choice.
    pub fn experiment(&self, candidate: u32, choice: usize) -> Result<Experiment, PlannerError> {
        let problem = Problem::new(&self.requirements, &self.parts)?;
        let index = problem.records.iter().position(|record| record.number == candidate);
        let (Some(index), true) = (index, choice < problem.choices.len()) else {
            let why = format!("there is no candidate {candidate} with choice {choice}");
            return Err(PlannerError::file(&self.requirements.experiment, why, "see the numbers in the plan"));
        };
        let triggers = self.requirements.search.triggers.last().copied().unwrap_or(1);
        problem.experiment(&Case::new(index, choice, 1.0), triggers, None)
    }
}
