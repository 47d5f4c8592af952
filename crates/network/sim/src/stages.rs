//! Two stages: a simulation for each event builder, and super-fragments between them.
//!
//! The simulation with the earliest event continues, so none sees what another does later. A super-fragment passes from
//! stage to stage in no time, as soon as its readout unit has room.

use crate::{
    Packets, SimulateError, simulated,
    simulation::{Observe, Simulation},
    statistics,
    trace::Trace,
};
use evb_core::Time;
use evb_experiment::{Plan, Stages};
use evb_protocol::Fragment;
use evb_record::Record;
use evb_unit::SimulatedPayload;
use std::{collections::VecDeque, time::Instant};

/// Simulates the event builders of both stages.
pub(crate) fn simulate(plan: &Plan, stages: &Stages, observe: &mut Observe<'_>) -> Result<Record, SimulateError> {
    let start = Instant::now();
    let plans: Vec<_> = stages.groups.iter().chain(&stages.slices).map(simulated).collect::<Result<_, _>>()?;
    // A simulation with trains may have to start again, and these run together.
    let simulation = |plan| Simulation::new(plan, Trace::new(None), Packets::OneByOne);
    let mut groups: Vec<_> = plans.iter().map(simulation).collect::<Result<_, _>>()?;
    let slices = groups.split_off(stages.groups.len());
    let links = vec![Junction::default(); groups.len() * slices.len()];
    let mut pair = Pair { groups, slices, links };
    pair.run(observe);
    let record = |simulation: &Simulation<'_>| statistics::record(simulation, start.elapsed().as_secs_f64());
    let records = evb_record::Stages {
        first: pair.groups.iter().map(record).collect(),
        second: pair.slices.iter().map(record).collect(),
    };
    let mut whole = records.whole(&plan.name).expect("a plan has a slice or more");
    whole.sweep = plan.sweep.iter().cloned().collect();
    Ok(whole)
}

/// The connection from a builder of a group to a readout unit of a slice.
#[derive(Clone, Default)]
struct Junction {
    /// A super-fragment that waits for room.
    waiting: Option<(u64, Fragment<SimulatedPayload>)>,
    /// Number of the last super-fragment that was passed on.
    last: u64,
    has_ended: bool,
}

/// The simulations of both stages.
struct Pair<'a> {
    groups: Vec<Simulation<'a>>,
    slices: Vec<Simulation<'a>>,
    /// The junctions of the first group, then those of the others, each to all slices.
    links: Vec<Junction>,
}

impl<'a> Pair<'a> {
    fn run(&mut self, observe: &mut Observe<'_>) {
        (0..self.count()).for_each(|index| self.at(index).begin(&mut |_| true));
        (0..self.count()).for_each(|index| self.exchange(Time::ZERO, index));
        while let Some((now, index)) = self.next() {
            let mut goes_on = true;
            self.at(index).step(&mut |progress| {
                goes_on = observe(progress);
                goes_on
            });
            if !goes_on {
                break;
            }
            self.exchange(now, index);
        }
        (0..self.count()).for_each(|index| self.at(index).end());
    }

    fn count(&self) -> usize {
        self.groups.len() + self.slices.len()
    }

    /// A simulation by its index: the groups, then the slices.
    fn at(&mut self, index: usize) -> &mut Simulation<'a> {
        match index.checked_sub(self.groups.len()) {
            Some(slice) => &mut self.slices[slice],
            None => &mut self.groups[index],
        }
    }

    /// The simulation with the earliest event, the first of those with one at the same time.
    fn next(&self) -> Option<(Time, usize)> {
        let all = self.groups.iter().chain(&self.slices).enumerate();
        all.filter_map(|(index, simulation)| Some((simulation.next_time()?, index))).min()
    }

    /// Moves super-fragments from and to a simulation in which something has happened, and those that follow.
    fn exchange(&mut self, now: Time, index: usize) {
        let (groups, slices) = (self.groups.len(), self.slices.len());
        let mut touched = VecDeque::from([index]);
        while let Some(index) = touched.pop_front() {
            let links: Vec<_> = match index.checked_sub(groups) {
                Some(slice) => (0..groups).map(|group| (group, slice)).collect(),
                None => (0..slices).map(|slice| (index, slice)).collect(),
            };
            for (group, slice) in links {
                if self.pass(now, group, slice) {
                    // Both may have room now, or a super-fragment.
                    touched.extend([group, groups + slice]);
                }
            }
        }
    }

    /// Moves all super-fragments of a group that a slice has room for; returns true if there were any.
    fn pass(&mut self, now: Time, group: usize, slice: usize) -> bool {
        let link = &mut self.links[group * self.slices.len() + slice];
        let (from, to) = (&mut self.groups[group], &mut self.slices[slice]);
        let (builder, unit) = (slice as u16, group as u16);
        let mut moved = false;
        // A slice that is over takes everything and builds nothing of it, like a lost readout unit.
        while to.has_ended() || to.has_room(unit) {
            link.waiting = link.waiting.take().or_else(|| from.pop_super_fragment(builder));
            let Some((number, fragment)) = link.waiting.take() else { break };
            if !to.has_ended() {
                to.give(now, unit, Ok((number, fragment)));
            }
            from.taken(now, builder, number);
            link.last = number;
            moved = true;
        }
        if from.has_ended() && link.waiting.is_none() && !link.has_ended && !to.has_ended() {
            link.has_ended = true;
            moved = true;
            to.give(now, unit, Err(link.last));
        }
        if moved {
            self.groups[group].follow(&mut |_| true);
            self.slices[slice].follow(&mut |_| true);
        }
        moved
    }
}
