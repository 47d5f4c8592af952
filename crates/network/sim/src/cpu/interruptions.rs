//! What takes cores away from workers: timers of the system, other programs, and the machine below a virtual one.

use evb_core::{NodeId, Span, Stream, Time, stream};
use evb_experiment::Interruption;
use rand_distr::{Distribution as _, Exp1};

/// Marks the random stream of interruptions.
const PURPOSE: u64 = 0x0069_6e74_6572_7275;

/// The interruptions of a worker. Each kind is a Poisson process in the time for which it has a core.
pub(super) struct Interruptions {
    random: Stream,
    kinds: Vec<(Interruption, Time)>,
}

impl Interruptions {
    pub(super) fn new(kinds: &[Interruption], seed: u64, worker: usize) -> Self {
        let mut all = Self { random: stream(seed, NodeId(worker as u16), PURPOSE), kinds: Vec::new() };
        for &kind in kinds {
            let first = Time::ZERO + interval(&mut all.random, kind);
            all.kinds.push((kind, first));
        }
        all
    }

    /// The end of work that would last from `from` to `until`. The same interruption delays the work again if it is planned anew.
    pub(super) fn delay(&mut self, from: Time, until: Time) -> Time {
        let mut end = until;
        for (kind, next) in &mut self.kinds {
            // An interruption that ended before this work began does not delay it.
            while *next + kind.length <= from {
                *next = *next + kind.length + interval(&mut self.random, *kind);
            }
            if *next < end {
                end = end + (*next + kind.length).since((*next).max(from));
            }
        }
        end
    }
}

/// The time to the next interruption of a kind.
fn interval(random: &mut Stream, kind: Interruption) -> Span {
    let one: f64 = Exp1.sample(random);
    Span((one * kind.every.0 as f64) as u64)
}
