//! The measurement of some links at once: round trips, then throughput in both directions.

use super::Pair;
use crate::{
    driver::{NodeResult, RECEIVED_BYTES},
    error::BenchError,
    idle_policy::Wait,
    launch::LaunchedNodes,
    measurement::saturating,
    statistics::times,
    work::Work,
};
use evb_core::{NodeId, NodeRange, Span, Time};
use evb_patterns::{Pattern, TrafficConfig};
use evb_record::steady::ENDED;
use evb_record::{LinkSpeed, Times};

/// Parts of the measured time, of which the slowest is reported.
const WINDOWS: u64 = 10;

/// How links are measured.
#[derive(Clone, Copy)]
pub(super) struct Trials {
    pub(super) sizes: [usize; 2],
    pub(super) warmup: Span,
    pub(super) duration: Span,
    pub(super) wait: Wait,
    pub(super) seed: u64,
}

/// The result of a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    pub(super) half_round_trip_ns: Times,
    /// Half of the measured time of each round trip. It counts one that has not ended, too.
    mean_half_round_trip_ns: f64,
    pub(super) least_round_trips_per_s: f64,
    pub(super) bytes_per_s: [f64; 2],
    pub(super) least_bytes_per_s: [f64; 2],
    pub(super) lost: u64,
}

impl Trial {
    pub(super) fn speed(&self) -> LinkSpeed {
        LinkSpeed {
            half_round_trip_ns: self.half_round_trip_ns.p50,
            mean_half_round_trip_ns: self.mean_half_round_trip_ns,
            least_round_trips_per_s: self.least_round_trips_per_s,
            bytes_per_s: self.bytes_per_s[0].min(self.bytes_per_s[1]),
        }
    }
}

impl Trials {
    /// Measures pairs that have no node in common, all at once.
    pub(super) fn measure(&self, nodes: &mut dyn LaunchedNodes, pairs: &[Pair]) -> Result<Vec<Trial>, BenchError> {
        let mut trials = vec![Trial::default(); pairs.len()];
        let [small, bulk] = self.sizes;
        let one_way = Pattern::Assigned { destinations: (0..pairs.len() as u16).collect() };
        for (first, pattern, size) in [(0, Pattern::PingPong, small), (0, one_way.clone(), bulk), (1, one_way, bulk)] {
            let is_round_trip = pattern == Pattern::PingPong;
            let results = nodes.measure(&self.work(pairs, first, pattern, size))?;
            let (senders, receivers) = results.split_at(pairs.len());
            for ((trial, sender), receiver) in trials.iter_mut().zip(senders).zip(receivers) {
                trial.lost += [sender, receiver].map(|node| node.lost + node.corrupted).iter().sum::<u64>();
                if is_round_trip {
                    let cycles = times([&sender.times]).unwrap_or_default();
                    trial.half_round_trip_ns = cycles.scaled(0.5);
                    trial.mean_half_round_trip_ns = sender.seconds * 0.5e9 / cycles.samples.max(1) as f64;
                    trial.least_round_trips_per_s = self.least(sender, ENDED);
                } else {
                    trial.bytes_per_s[first] = rate(receiver, size);
                    trial.least_bytes_per_s[first] = self.least(receiver, RECEIVED_BYTES);
                }
            }
        }
        Ok(trials)
    }

    /// The work of pairs whose senders are the first or the second of each.
    fn work(&self, pairs: &[Pair], first: usize, pattern: Pattern, size: usize) -> Work {
        let count = pairs.len() as u16;
        let range = |first: u16| NodeRange { first: NodeId(first), count };
        let config =
            TrafficConfig { senders: range(1), receivers: range(1 + count), pattern, window: 1, seed: self.seed };
        let plan = saturating(config, size, self.warmup, self.duration);
        let side = |side: usize| pairs.iter().map(move |pair| pair[side]);
        let members = side(first).chain(side(1 - first)).collect();
        Work::new(plan, self.wait).expect("the plan is one of traffic").untimed().of(members)
    }

    /// The rate of a count in the slowest part of the measured time.
    fn least(&self, node: &NodeResult, count: usize) -> f64 {
        let moment = |part: u64| Time(self.warmup.0 + self.duration.0 / WINDOWS * part);
        let rates = (0..WINDOWS).map(|part| node.series.rate((moment(part), moment(part + 1)), count));
        rates.fold(f64::INFINITY, f64::min)
    }
}

fn rate(receiver: &NodeResult, size: usize) -> f64 {
    if receiver.seconds > 0.0 { receiver.messages as f64 * size as f64 / receiver.seconds } else { 0.0 }
}
