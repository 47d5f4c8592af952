//! What a network has, to compare it with others: one that has as much in every respect is at least as good.

use crate::{
    bounds::uplink_loads,
    candidate::{Candidate, host_rate},
    demand::Demand,
    requirements::Failure,
};
use evb_core::Span;

/// What the traffic of an event builder finds in a network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strength {
    /// Bits per second of the cables of hosts, and of the cables to each higher level; infinite where there is no such level.
    rates: Vec<f64>,
    /// The loads that the uplinks of each level carry, with and without failures; infinite where there is no such level.
    loads: Vec<f64>,
    levels: usize,
    /// Bytes of memory of the switches along the longest route, and in a leaf for each of its hosts; `None` if the parts have none.
    memory: Option<[f64; 2]>,
    /// Of a switch, of the cable of a host, and of a cable between switches.
    delays: [Span; 3],
}

/// Most levels of switches below the highest one.
const LEVELS: usize = 2;

impl Strength {
    pub(crate) fn of(candidate: &Candidate<'_>, demand: &Demand, survive: &[Failure], reserve: f64) -> Self {
        let levels = &candidate.levels;
        let below_top = &levels[..levels.len() - 1];
        let absent = std::iter::repeat_n(f64::INFINITY, LEVELS - below_top.len());
        let host = host_rate(candidate.interface, demand).0 as f64;
        let rates = below_top.iter().map(|level| level.rate.0 as f64);
        let mut loads = uplink_loads(candidate, demand, survive, reserve);
        loads.resize(LEVELS * (1 + survive.len()), f64::INFINITY);
        let smallest = levels.iter().filter_map(|level| level.part.buffer).min();
        let on_route = (2 * levels.len() - 1) as f64;
        Self {
            rates: [host].into_iter().chain(rates).chain(absent).collect(),
            loads,
            levels: levels.len(),
            memory: smallest.map(|bytes| [bytes.0 as f64 * on_route, bytes.0 as f64 / f64::from(levels[0].hosts)]),
            delays: [
                levels.iter().filter_map(|level| level.part.delay).max().unwrap_or_default(),
                candidate.host_cable.time(candidate.site.host_cable_m),
                candidate.switch_cable.map(|cable| cable.time(candidate.site.switch_cable_m)).unwrap_or_default(),
            ],
        }
    }

    /// True if the other one has no more in any respect.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.carries_as_much(other) && self.delays.iter().zip(&other.delays).all(|(mine, its)| mine <= its)
    }

    /// The same, whatever the delays are.
    pub(crate) fn carries_as_much(&self, other: &Self) -> bool {
        let all = |mine: &[f64], its: &[f64]| mine.iter().zip(its).all(|(mine, its)| mine >= its);
        let has_memory = match (&self.memory, &other.memory) {
            (Some(mine), Some(its)) => all(mine, its),
            (mine, its) => mine.is_none() && its.is_none(),
        };
        self.levels <= other.levels && has_memory && all(&self.rates, &other.rates) && all(&self.loads, &other.loads)
    }

    /// The load that the uplinks of all levels carry, with and without failures; infinite if there are none.
    pub(crate) fn uplink_load(&self) -> f64 {
        self.loads.iter().copied().fold(f64::INFINITY, f64::min)
    }
}
