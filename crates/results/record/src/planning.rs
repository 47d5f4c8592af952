//! The search for the network of an event builder.

use crate::{Bounds, Outcome, RecordKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The networks that were considered for an event builder, and why each is enough or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planning {
    /// Always [`RecordKind::Planning`].
    pub kind: RecordKind,
    /// Name of the planning file.
    pub plan: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
    /// The requirement.
    pub goal: PlanningGoal,
    /// Date of the parts and their prices, as their file has it.
    pub parts_date: String,
    /// Unit of costs.
    pub currency: String,
    /// The values of the free keys of the experiment, in the order of the planning file; one entry without keys if it has none.
    pub choices: Vec<BTreeMap<String, String>>,
    /// The networks that fit the ports of the parts, the cheapest first.
    pub candidates: Vec<PlanCandidate>,
    /// What is known of each candidate for each choice: candidate by candidate, and choice by choice within.
    pub judgements: Vec<Judgement>,
    /// The networks that no other one beats in cost, power and load at once, the cheapest first.
    pub front: Vec<FrontEntry>,
    /// The requirement that a choice cannot meet, or that the search left open, in words.
    pub notes: Vec<String>,
    /// Number of simulations, those of earlier searches that were used again included.
    pub simulations: u64,
    /// What to change about the cheapest network of each choice, and which assumptions decide; empty without `--advice`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
}

/// The requirement of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanningGoal {
    /// Number of readout units.
    pub readout_units: u16,
    /// Number of builder units.
    pub builder_units: u16,
    /// Number of hosts.
    pub hosts: u16,
    /// Mean bytes of an event: at the lower and at the upper end of its range.
    pub event_bytes: Bounds,
    /// Events per second: the lower and the upper end of its range.
    pub rate_hz: Bounds,
    /// Part by which the rate may grow.
    pub growth: f64,
    /// Part of the rate that is kept in reserve.
    pub headroom: f64,
    /// Accepted loss in per cent of the events.
    pub accept_loss: u8,
    /// Longest 99th percentile of the latency, in microseconds; `None` without a limit.
    pub latency_us: Option<f64>,
    /// The failures that are survived: `cable`, `switch`.
    pub survive: Vec<String>,
}

/// A network made of parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanCandidate {
    /// Its number, from 1: the cheapest first.
    pub number: u32,
    /// The switches and cables in words.
    pub network: String,
    /// Rate of the interfaces of the hosts, in bits per second.
    pub host_bits_per_s: u64,
    /// The levels of switches, that of the hosts first.
    pub levels: Vec<PlanLevel>,
    /// Cost of all parts: the lower and the upper end of its range.
    pub cost: Bounds,
    /// Power of all parts in watts.
    pub power_w: f64,
    /// The parts and their number.
    pub bill: Vec<BillLine>,
}

/// The switches of one level of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLevel {
    /// Name of the part.
    pub switch: String,
    /// Number of switches.
    pub switches: u32,
    /// Cables of each switch to the level below, or to hosts.
    pub down: u32,
    /// Cables of each switch to the level above; 0 at the highest level.
    pub up: u32,
    /// Rate of each cable to the level above, in bits per second; 0 at the highest level.
    pub up_bits_per_s: u64,
}

/// A line of a bill of material.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BillLine {
    /// `switch`, `cable` or `interface`.
    pub kind: String,
    /// Name of the part.
    pub part: String,
    /// Number of parts.
    pub count: u64,
    /// Cost of one: the lower and the upper end of its range.
    pub each: Bounds,
    /// Power of one in watts.
    pub power_w: f64,
    /// Source of the values.
    pub source: String,
}

/// What is known of a candidate for one choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Number of the candidate.
    pub candidate: u32,
    /// Index of the choice.
    pub choice: usize,
    /// The verdict for the whole requirement.
    pub verdict: PlanVerdict,
    /// The figures that decided.
    pub reason: String,
    /// The largest load that was carried in a simulation, as a factor of the requirement; `None` if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<f64>,
    /// The load up to which no bound excludes it, as a factor of the requirement.
    pub bound: f64,
}

/// The verdict on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanVerdict {
    /// It carries the requirement in all simulations.
    Enough,
    /// A bound excludes it: no traffic of this size fits.
    Bound,
    /// A simulation shows that it is not enough.
    Simulated,
    /// A network of the same parts with more of them is not enough.
    Inferred,
    /// The longest simulation does not tell.
    CannotTell,
    /// It was not looked at: a cheaper network is enough.
    NotTried,
}

impl PlanVerdict {
    /// The verdict in records.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Enough => "enough",
            Self::Bound => "bound",
            Self::Simulated => "simulated",
            Self::Inferred => "inferred",
            Self::CannotTell => "cannot_tell",
            Self::NotTried => "not_tried",
        }
    }
}

/// A network of the front.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrontEntry {
    /// Number of the candidate.
    pub candidate: u32,
    /// Index of the choice.
    pub choice: usize,
    /// The load that it carries in all simulations, as a factor of the requirement with growth and headroom.
    pub carries: f64,
    /// 99th percentile of the latency at the requirement, in microseconds; `None` if it carries less.
    pub latency_p99_us: Option<f64>,
    /// The link that was in use most of the time then; empty if none was.
    pub busiest_link: String,
    /// The part of the time in which it was.
    pub busiest_used: f64,
}

/// A network with one thing changed at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Number of the candidate.
    pub candidate: u32,
    /// Index of the choice.
    pub choice: usize,
    /// What could be changed, at a load of [`GAINED`] times the requirement; the first one is the network as it is.
    pub changes: Vec<PlanChange>,
    /// What was assumed, and the network if that is wrong, at the requirement: for each assumption at the lower factor of
    /// [`ASSUMED`] and then at the upper one.
    pub assumptions: Vec<Assumption>,
}

/// The load at which changes are tried, as a factor of the requirement: a gain of 10 %.
pub const GAINED: f64 = 1.1;
/// Factors of assumed values.
pub const ASSUMED: [f64; 2] = [0.9, 1.1];

/// A change of a network or of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanChange {
    /// What is changed, in words.
    pub what: String,
    /// Number of the candidate that the network becomes.
    pub candidate: u32,
    /// Index of the choice.
    pub choice: usize,
    /// Cost beside that of the network as it is: the lower and the upper end of its range.
    pub extra_cost: Bounds,
    /// Whether it carries the load.
    pub answer: PlanAnswer,
}

/// An assumption about the experiment that may be wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assumption {
    /// What is assumed, in words.
    pub what: String,
    /// The value that the plan has.
    pub value: String,
    /// The value that is tried, as a factor of that.
    pub factor: f64,
    /// Whether the network still carries the requirement.
    pub answer: PlanAnswer,
}

/// Whether a network carries a load, and the figures that say so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswer {
    /// Whether it does, by all simulations, those with failures included.
    pub outcome: Outcome,
    /// The reason why it does not, or why that cannot be told; empty if it does.
    pub reason: String,
    /// The longest simulation without a failure; `None` if a bound or the search told already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<PlanFigures>,
}

/// The figures of a simulation of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanFigures {
    /// Events per second that were built.
    pub rate_hz: f64,
    /// Events per second that were offered.
    pub offered_hz: f64,
    /// 99th percentile of the latency, in microseconds.
    pub latency_p99_us: f64,
    /// The link that was in use most of the time; empty if none was.
    pub busiest_link: String,
    /// The part of the time in which it was.
    pub busiest_used: f64,
}

impl Planning {
    /// Good if a network is enough, and cannot tell if one may be.
    pub fn outcome(&self) -> Outcome {
        let has = |verdict| self.judgements.iter().any(|judgement| judgement.verdict == verdict);
        match (has(PlanVerdict::Enough), has(PlanVerdict::CannotTell)) {
            (true, _) => Outcome::Good,
            (false, true) => Outcome::CannotTell,
            (false, false) => Outcome::NotGood,
        }
    }

    /// The cheapest network that is enough, and the index of its choice.
    pub fn cheapest(&self) -> Option<(&PlanCandidate, usize)> {
        (0..self.choices.len())
            .filter_map(|choice| Some((self.cheapest_of(choice)?, choice)))
            .min_by(|(a, _), (b, _)| a.cost.high.total_cmp(&b.cost.high))
    }

    /// The cheapest network that is enough with a choice.
    pub fn cheapest_of(&self, choice: usize) -> Option<&PlanCandidate> {
        // The candidates are in the order of their costs.
        self.candidates.iter().find(|candidate| self.judgement(candidate.number, choice).verdict == PlanVerdict::Enough)
    }

    /// The candidate with a number.
    ///
    /// # Panics
    /// There is none.
    pub fn candidate(&self, number: u32) -> &PlanCandidate {
        &self.candidates[number as usize - 1]
    }

    /// What is known of a candidate for a choice.
    ///
    /// # Panics
    /// There is no such candidate, or no such choice.
    pub fn judgement(&self, number: u32, choice: usize) -> &Judgement {
        &self.judgements[(number as usize - 1) * self.choices.len() + choice]
    }

    /// A choice in words, such as `shaping = none`; empty if nothing is free.
    pub fn choice_in_words(&self, choice: usize) -> String {
        let words = self.choices[choice].iter().map(|(key, value)| format!("{key} = {value}"));
        words.collect::<Vec<_>>().join(", ")
    }
}
