//! What a fit has to know of the machine beside its runs.

use evb_core::Span;
use evb_experiment::Interruption;
use evb_os::cores;
use std::{
    thread,
    time::{Duration, Instant},
};

/// A shorter gap is no interruption.
const SHORTEST: Duration = Duration::from_micros(10);
/// Interruptions shorter than the first are one kind, those shorter than the second another, and all others the third.
const KINDS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(1)];

/// The machine that runs have been on.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Number of cores that the runs had.
    pub cores: u16,
    /// Bytes of the cache of one of them.
    pub cache: u64,
    /// What takes them away; `None` if that is not known.
    pub interruptions: Option<Vec<Interruption>>,
}

/// Measures the interruptions of these cores for some time. A thread on each core reads the clock without rest, and each gap between
/// two readings is an interruption. `None` if a thread cannot be bound to one of the cores.
#[must_use]
pub fn interruptions(cores: &[u16], time: Duration) -> Option<Vec<Interruption>> {
    let watchers: Vec<_> = cores.iter().map(|&core| thread::spawn(move || gaps(core, time))).collect();
    let gaps: Option<Vec<_>> = watchers.into_iter().map(|watcher| watcher.join().ok().flatten()).collect();
    Some(kinds(&gaps?.concat(), time * cores.len() as u32))
}

/// The gaps on one core, if the thread can be bound to it.
fn gaps(core: u16, time: Duration) -> Option<Vec<Duration>> {
    cores::pin(core).ok()?;
    let start = Instant::now();
    let (mut last, mut gaps) = (start, Vec::new());
    while last.duration_since(start) < time {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if gap >= SHORTEST {
            gaps.push(gap);
        }
        last = now;
    }
    Some(gaps)
}

/// The kinds of interruptions that some gaps were, in the time of all cores together.
fn kinds(gaps: &[Duration], time: Duration) -> Vec<Interruption> {
    let kind = |gap: &Duration| KINDS.iter().position(|limit| gap < limit).unwrap_or(KINDS.len());
    let of = |wanted: usize| {
        let these: Vec<_> = gaps.iter().filter(|gap| kind(gap) == wanted).collect();
        let (count, away) = (these.len() as u32, these.into_iter().sum::<Duration>());
        let all: Duration = gaps.iter().sum();
        let mean = |time: Duration| Span::from(time / count);
        (count > 0).then(|| Interruption { every: mean(time.saturating_sub(all)), length: mean(away) })
    };
    (0..=KINDS.len()).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_kinds_by_their_lengths() {
        let gap = Duration::from_micros;
        let found = kinds(&[gap(20), gap(30), gap(40), gap(5000), gap(3000)], Duration::from_secs(1));
        let us = |us: u64| Span(us * 1_000_000);
        let expected = [(330_636, 30), (495_955, 4000)].map(|(every, length)| (us(every), us(length)));
        let found: Vec<_> = found.iter().map(|one| (Span(one.every.0 / 1_000_000 * 1_000_000), one.length)).collect();
        assert_eq!(found, expected);
        assert!(kinds(&[], Duration::from_secs(1)).is_empty());
    }

    #[test]
    fn nothing_is_known_of_a_core_that_is_not_there() {
        let core = cores::allowed()[0];
        let known = |cores: &[u16]| interruptions(cores, Duration::from_millis(1)).is_some();
        assert!(known(&[core]));
        assert!(!known(&[core, u16::MAX - 1]));
    }
}
