//! The counts of a node, and their result.

use super::{Node, Phase};
use crate::{
    clock::cpu_ns,
    offers::Offers,
    peers::Peers,
    samples::{SampleSummary, Samples},
};
use evb_core::{Span, Time};
use evb_patterns::Pattern;
use evb_record::steady::{RATES, Series};
use evb_transport::MessageLayer;
use serde::{Deserialize, Serialize};

/// The measurements of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeResult {
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Processor time within the measured time, in seconds; 0 for a simulated network.
    pub cpu_seconds: f64,
    /// Data messages received within the measured time.
    pub messages: u64,
    /// Data messages sent within the measured time.
    pub sent: u64,
    /// Times of the cycles that ended within the measured time; under a rate, transfer times of the received messages.
    pub times: SampleSummary,
    /// Longest time between two receptions, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Data messages received in all, including warm-up and end.
    pub all_messages: u64,
    /// Data messages that were sent to this node and did not arrive.
    pub lost: u64,
    /// Data messages with wrong bytes, a wrong length, or out of order.
    pub corrupted: u64,
    /// Messages that were due under a rate and not even queued, because too many waited.
    pub refused: u64,
    /// Data messages sent in all.
    pub all_sent: u64,
    /// Messages that were due under a rate, or events of gathering that the node knows.
    pub offered: u64,
    /// Cycles and events that this node has ended in all.
    pub ended: u64,
    /// Bytes of the data messages that were received and sent in all.
    pub received_bytes: u64,
    /// Bytes of the data messages sent in all.
    pub sent_bytes: u64,
    /// Data messages that were to be shorter than a message can be, and had the shortest length.
    pub lengthened: u64,
    /// Counts since the start: those by which a window is found, then [`RECEIVED`] and those that follow it. An event of
    /// gathering counts once for each node that gathers for it.
    pub series: Series,
}

/// Index of the data messages received in [`NodeResult::series`].
pub const RECEIVED: usize = RATES;
/// Index of their bytes.
pub const RECEIVED_BYTES: usize = RATES + 1;
/// Index of the bytes sent.
pub const SENT_BYTES: usize = RATES + 2;

/// A moment, and the counts at that moment.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) at: Time,
    pub(super) cpu_ns: u64,
    pub(super) messages: u64,
    pub(super) sent: u64,
}

impl<L: MessageLayer + ?Sized> Node<'_, L> {
    /// Keeps the counts over time.
    pub(super) fn mark_series(&mut self) {
        let since = Time(self.now.since(self.start).0);
        if self.series.is_due(since) {
            let counts = self.counts();
            self.series.mark(since, &counts);
        }
    }

    /// The counts of [`NodeResult::series`].
    pub(super) fn counts(&self) -> [u64; RATES + 3] {
        let offered = self.offers.as_ref().map_or(0, Offers::counted);
        let (started, done) = match self.work.pattern() {
            Pattern::Gather { .. } => (offered, self.ended),
            _ => (self.peers.sent, self.peers.received),
        };
        let has_cycles = self.work.pattern().has_cycles();
        let ended = if has_cycles { self.ended } else { done };
        let Peers { received, received_bytes, sent_bytes, .. } = self.peers;
        [offered, started, ended, done, received, received_bytes, sent_bytes]
    }

    /// Begins the measured time after the warm-up.
    pub(super) fn begin_measurement(&mut self) {
        let warmup = self.work.plan.run.warmup.unwrap_or(Span::ZERO);
        let warm = self.phase == Phase::Running && self.now.since(self.start) >= warmup;
        if self.from.is_none() && warm {
            self.from = Some(self.mark());
            self.samples = Samples::new();
            (self.last_arrival, self.longest_gap) = (None, Span::ZERO);
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            at: self.now,
            cpu_ns: if self.clock.is_virtual() { 0 } else { cpu_ns(!self.setting.shares_process) },
            messages: self.peers.received,
            sent: self.peers.sent,
        }
    }

    pub(super) fn note_arrival(&mut self) {
        self.begin_measurement();
        if let Some(last) = self.last_arrival.replace(self.now) {
            self.longest_gap = self.longest_gap.max(self.now.since(last));
        }
    }

    pub(super) fn result(mut self) -> NodeResult {
        self.now = self.clock.now();
        self.series.end(Time(self.now.since(self.start).0), &self.counts());
        let (from, to) = match (self.from, self.to) {
            (Some(from), Some(to)) => (from, to),
            // It ended before it was warm: nothing was measured.
            _ => (self.mark(), self.mark()),
        };
        NodeResult {
            seconds: to.at.since(from.at).as_secs_f64(),
            cpu_seconds: (to.cpu_ns - from.cpu_ns) as f64 * 1e-9,
            messages: to.messages - from.messages,
            sent: to.sent - from.sent,
            times: self.samples.finish(),
            longest_gap_ns: self.longest_gap.0 / 1000,
            all_messages: self.peers.received,
            lost: self.peers.lost(),
            corrupted: self.peers.corrupted,
            refused: self.refused,
            all_sent: self.peers.sent,
            offered: self.offers.as_ref().map_or(0, |offers| offers.made),
            ended: self.ended,
            received_bytes: self.peers.received_bytes,
            sent_bytes: self.peers.sent_bytes,
            lengthened: self.sizes.lengthened(self.peers.sent),
            series: self.series,
        }
    }
}
