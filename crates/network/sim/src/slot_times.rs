//! Errors of the times at which a readout unit begins its buckets: a constant one and random ones.

use crate::jitter::JitterTimes;
use evb_core::{NodeId, Span, Time, stream};
use evb_experiment::SlotErrors;
use evb_protocol::Message;
use rand::RngExt as _;

/// The purposes of the random streams of a readout unit.
const SKEW: u64 = 105;
const JITTER: u64 = 106;

/// The errors of one readout unit.
///
/// A unit is later than the earliest possible one by a constant time, from 0 to twice the skew. Only the differences of
/// units matter, since nothing else keeps step with the slots. So no time is ever before the start of the simulation.
pub(crate) struct SlotTimes {
    lateness: Span,
    /// The lateness of the latest possible unit.
    latest: Span,
    jitter: Option<JitterTimes>,
}

impl SlotTimes {
    /// The errors of a unit, from random streams of its own.
    pub(crate) fn new(errors: &SlotErrors, seed: u64, unit: NodeId) -> Self {
        let latest = Span(2 * errors.skew.0);
        let lateness = Span(stream(seed, unit, SKEW).random_range(0..=latest.0));
        let jitter = errors.jitter.map(|jitter| JitterTimes::new(&jitter, (seed, unit.index(), JITTER)));
        Self { lateness, latest, jitter }
    }

    /// The delay with which the unit receives a message that permits a bucket; zero for all others. It is never early,
    /// because a message cannot arrive before it was sent.
    pub(crate) const fn of_message<B>(&self, message: &Message<B>) -> Span {
        match message {
            Message::Credit { .. } | Message::Round { .. } => self.lateness,
            _ => Span::ZERO,
        }
    }

    /// What the unit takes for the event manager's time. A unit that is late believes that it is earlier.
    pub(crate) fn believed(&self, manager: Time) -> Time {
        manager + Span(self.latest.0 - self.lateness.0)
    }

    /// The time by which the next bucket is late.
    pub(crate) fn before_bucket(&mut self) -> Span {
        self.jitter.as_mut().map_or(Span::ZERO, JitterTimes::next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEWED: SlotErrors = SlotErrors { skew: Span(1000), jitter: None };

    #[test]
    fn units_differ_by_up_to_twice_the_skew_with_and_without_a_clock() {
        let credit = Message::<()>::Credit { calm: false };
        let late: Vec<u64> =
            (0..1000).map(|unit| SlotTimes::new(&SKEWED, 7, NodeId(unit)).of_message(&credit).0).collect();
        let mean = late.iter().sum::<u64>() / 1000;
        assert!((950..=1050).contains(&mean), "{mean}");
        let (least, most) = (late.iter().min().unwrap(), late.iter().max().unwrap());
        assert!(*least < 20 && (1980..=2000).contains(most), "{least} to {most}");
        for unit in (0..1000).map(NodeId) {
            let times = SlotTimes::new(&SKEWED, 7, unit);
            let late = times.of_message(&credit);
            assert_eq!(times.believed(Time(5000)) + late, Time(7000), "a late unit is late by the clock, too");
        }
    }

    #[test]
    fn without_errors_nothing_is_late() {
        let mut times = SlotTimes::new(&SlotErrors::default(), 7, NodeId(3));
        let round = Message::<()>::Round { number: 1, calm: false };
        assert_eq!(times.of_message(&round), Span::ZERO);
        assert_eq!(times.believed(Time(5)), Time(5));
        assert_eq!(times.before_bucket(), Span::ZERO);
    }
}
