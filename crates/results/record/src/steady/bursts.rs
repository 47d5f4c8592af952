//! Bursts: events that end together, with times between in which none ends.
//!
//! A window that begins or ends within a burst counts events whose data came before it, or the other way round. So its ends
//! are those of bursts.

/// Part of the later steps without an end from which on ends come in bursts. A step has five events on average: by chance one of 150
/// steps of a Poisson process has none.
const EMPTY: f64 = 0.2;
/// The same for two bursts, which may also be a run with a long pause.
const EMPTY_OF_TWO: f64 = 0.5;

/// The indices of `counts`, which are those of ended events at moments, at which a burst is over: the next step has no end.
/// `None` if events do not end in bursts.
pub(crate) fn ends(counts: &[u64]) -> Option<Vec<usize>> {
    let is_empty: Vec<bool> = counts.windows(2).map(|pair| pair[0] == pair[1]).collect();
    let (first, last) = (is_empty.iter().position(|empty| !empty)?, is_empty.iter().rposition(|empty| !empty)?);
    let within = &is_empty[first..=last];
    let ends: Vec<_> = (1..is_empty.len()).filter(|&step| is_empty[step] && !is_empty[step - 1]).collect();
    let bursts = within.windows(2).filter(|pair| pair[0] && !pair[1]).count() + 1;
    // Senders that begin together have bursts at first, which wear off.
    let later = &within[within.len() / 2..];
    let empty = later.iter().filter(|empty| **empty).count() as f64 / later.len() as f64;
    let is_bursty = match bursts {
        1 => false,
        2 => empty > EMPTY_OF_TWO,
        _ => empty > EMPTY,
    };
    is_bursty.then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ended: &[u64]) -> Vec<u64> {
        let sums = ended.iter().scan(0, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        [0].into_iter().chain(sums).collect()
    }

    #[test]
    fn a_burst_is_over_before_a_step_without_an_end() {
        assert_eq!(ends(&counts(&[0, 8, 0, 0, 6, 2, 0, 0, 8, 0])), Some(vec![2, 6, 9]));
        assert_eq!(ends(&counts(&[8, 0, 0, 8, 0, 0, 8])), Some(vec![1, 4]), "the last burst may continue");
    }

    #[test]
    fn single_empty_steps_and_a_pause_are_no_bursts() {
        let chance: Vec<u64> = (0..100).map(|step| if step % 10 == 0 { 0 } else { 5 }).collect();
        assert_eq!(ends(&counts(&chance)), None);
        assert_eq!(ends(&counts(&[0, 0, 0, 5, 5, 5, 5, 0, 0])), None, "before the first and behind the last");
        assert_eq!(ends(&counts(&[5, 5, 5, 0, 0, 5, 5, 5])), None, "a pause");
        assert_eq!(ends(&counts(&[0, 0, 0])), None);
    }
}
