//! HyStart: slow start ends before a queue overflows (Ha and Rhee, Taming the elephants: new TCP slow start, Computer Networks
//! 55, 2011). Its values are those of Linux (`net/ipv4/tcp_cubic.c`).

use super::Acked;
use evb_core::{Span, Time};

/// Segments of the window below which slow start goes on.
const LEAST_WINDOW: f64 = 16.0;
/// Longest time between two acknowledgements of a train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// Longest time for which a burst of the sender spreads acknowledgements.
const MOST_SPREAD: Span = Span::from_millis(1);
/// Bytes of such a burst: four segments of segmentation offload.
const BURST: f64 = 4.0 * 65_536.0;
/// Samples of a round from which on its delay counts.
const SAMPLES: u32 = 8;
/// Growth of the delay that shows a queue: an eighth of the shortest one, within these bounds.
const LEAST_GROWTH: Span = Span::from_millis(4);
const MOST_GROWTH: Span = Span::from_millis(16);

/// What slow start has seen.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    shortest: Option<Span>,
    round: Option<Round>,
}

/// A round trip.
#[derive(Debug)]
struct Round {
    began: Time,
    last: Time,
    /// The round ends when all bytes before this place have arrived.
    end: u64,
    samples: u32,
    shortest: Span,
}

impl HyStart {
    /// An acknowledgement has come; true if it shows that a window of `bytes`, which are `segments`, fills the path.
    pub(super) fn shows_full(&mut self, acked: &Acked, bytes: f64, segments: f64) -> bool {
        let shortest = self.shortest.map_or(acked.sample, |shortest| shortest.min(acked.sample));
        self.shortest = Some(shortest);
        let round = match &mut self.round {
            Some(round) if acked.expected <= round.end => round,
            old => old.insert(Round::new(acked)),
        };
        let is_train = acked.now.since(round.last) <= TRAIN_GAP;
        if is_train {
            round.last = acked.now;
        }
        round.shortest = round.shortest.min(acked.sample);
        round.samples += 1;
        let growth = Span(shortest.0 / 8).clamp(LEAST_GROWTH, MOST_GROWTH);
        let is_long = is_train && 2 * acked.now.since(round.began).0 > shortest.0 + spread(acked, bytes).0;
        let is_late = round.samples > SAMPLES && round.shortest > shortest + growth;
        segments >= LEAST_WINDOW && (is_long || is_late)
    }
}

impl Round {
    fn new(acked: &Acked) -> Self {
        Self { began: acked.now, last: acked.now, end: acked.next, samples: 0, shortest: acked.sample }
    }
}

/// The time by which a burst of the sender spreads acknowledgements: slow start sends two windows in a round trip.
fn spread(acked: &Acked, window: f64) -> Span {
    let bytes_per_s = 2.0 * window / acked.round_trip.as_secs_f64().max(1e-9);
    let spread = Span((BURST / bytes_per_s * 1e12) as u64);
    spread.min(MOST_SPREAD)
}
