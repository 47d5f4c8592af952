//! Comparison of the marks of one event: fragments that were not recorded for the same trigger.

use crate::{Config, Fragment, FragmentStatus};
use alloc::vec::Vec;
use evb_core::{EventId, Mark, SourceId};

/// Most mismatches that are kept for the report.
pub(super) const MOST_REPORTED: usize = 8;

/// Two fragments of one event that disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The event.
    pub event: EventId,
    /// A source that agrees with the majority, or the first source, and its mark.
    pub expected: (SourceId, Mark),
    /// A source that disagrees, and its mark.
    pub found: (SourceId, Mark),
}

/// The result of a comparison.
#[derive(Default)]
pub(super) struct Comparison {
    /// The sources whose fragments disagree.
    pub(super) sources: Vec<SourceId>,
    /// The event cannot be complete.
    pub(super) spoils: bool,
    pub(super) first: Option<Mismatch>,
}

/// Compares the marks of good fragments. Those that disagree with the majority get the status
/// [`FragmentStatus::Mismatched`]. Without a majority all get it, since any of them may be wrong. Fragments of
/// tolerant sources keep their status and are only counted.
pub(super) fn compare<B>(event: EventId, fragments: &mut [Option<Fragment<B>>], config: &Config) -> Comparison {
    let agree = |one: Mark, other: Mark| config.marks.agree(one, other);
    let Some(Reference { expected, is_majority }) = reference(fragments, &config.tolerant, agree) else {
        return Comparison::default();
    };
    let Some(found) = marks(fragments).find(|(_, mark)| !agree(*mark, expected.1)) else {
        return Comparison::default();
    };
    let first = Some(Mismatch { event, expected, found });
    let disagrees = |mark: Mark| !is_majority || !agree(mark, expected.1);
    let mut found = Comparison { first, ..Comparison::default() };
    for fragment in fragments.iter_mut().flatten().filter(|fragment| fragment.status == FragmentStatus::Good) {
        if fragment.mark.is_some_and(disagrees) {
            found.sources.push(fragment.source);
            if !config.tolerant.contains(&fragment.source) {
                fragment.status = FragmentStatus::Mismatched;
                found.spoils = true;
            }
        }
    }
    found
}

struct Reference {
    /// The first source with the mark that most fragments agree with, and that mark.
    expected: (SourceId, Mark),
    is_majority: bool,
}

/// The mark that most fragments agree with; `None` if all agree with the first. Tolerant sources have no vote, unless no
/// other source carries a mark.
fn reference<B>(
    fragments: &[Option<Fragment<B>>],
    tolerant: &[SourceId],
    agree: impl Fn(Mark, Mark) -> bool,
) -> Option<Reference> {
    let (_, first) = marks(fragments).next()?;
    if marks(fragments).all(|(_, mark)| agree(mark, first)) {
        return None;
    }
    let only_tolerant = marks(fragments).all(|(source, _)| tolerant.contains(&source));
    let voters = || marks(fragments).filter(|(source, _)| only_tolerant || !tolerant.contains(source));
    let count = |wanted: Mark| voters().filter(|(_, mark)| agree(*mark, wanted)).count();
    let expected = voters().max_by_key(|(source, mark)| (count(*mark), core::cmp::Reverse(*source)))?;
    Some(Reference { expected, is_majority: 2 * count(expected.1) > voters().count() })
}

fn marks<B>(fragments: &[Option<Fragment<B>>]) -> impl Iterator<Item = (SourceId, Mark)> + '_ {
    let good = fragments.iter().flatten().filter(|fragment| fragment.status == FragmentStatus::Good);
    good.filter_map(|fragment| Some((fragment.source, fragment.mark?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use FragmentStatus::{Good, Mismatched};
    use alloc::{vec, vec::Vec};
    use evb_core::MarkComparison;

    /// The status of fragments with these marks after a comparison, and the result of the comparison.
    fn compared(values: &[Option<u32>], tolerant: &[u16]) -> (Vec<FragmentStatus>, Comparison) {
        compared_within(MarkComparison::EXACT, values, tolerant)
    }

    fn compared_within(
        marks: MarkComparison,
        values: &[Option<u32>],
        tolerant: &[u16],
    ) -> (Vec<FragmentStatus>, Comparison) {
        let event = EventId(7);
        let fragment = |(source, value): (u16, &Option<u32>)| Fragment {
            event,
            source: SourceId(source),
            length: 0,
            checksum: 0,
            mark: value.map(Mark::new),
            counter: None,
            status: Good,
            payload: (),
        };
        let mut fragments: Vec<_> = (0..).zip(values).map(fragment).map(Some).collect();
        let tolerant = tolerant.iter().copied().map(SourceId).collect();
        let found = compare(event, &mut fragments, &Config { tolerant, marks, ..Config::new(1, 1) });
        (fragments.into_iter().flatten().map(|fragment| fragment.status).collect(), found)
    }

    #[test]
    fn marks_against_the_majority_are_mismatched_and_all_without_one() {
        assert_eq!(compared(&[Some(3), None, Some(3)], &[]).0, vec![Good; 3]);
        let (status, found) = compared(&[Some(3), Some(4), Some(3)], &[]);
        assert_eq!((status, found.sources.len(), found.spoils), (vec![Good, Mismatched, Good], 1, true));
        let values = found.first.map(|mismatch| (mismatch.expected.1.value(), mismatch.found.1.value()));
        assert_eq!(values, Some((3, 4)));
        let (status, found) = compared(&[Some(3), None, Some(4)], &[]);
        assert_eq!((status, found.sources.len()), (vec![Mismatched, Good, Mismatched], 2));
    }

    #[test]
    fn marks_of_clocks_agree_within_the_tolerance() {
        let within = MarkComparison { tolerance: 1, bits: 8 };
        // The first agrees with the second only, and the second with all.
        assert_eq!(compared_within(within, &[Some(255), Some(0), Some(1)], &[]).0, vec![Good; 3]);
        let (status, found) = compared_within(within, &[Some(10), Some(13), Some(12)], &[]);
        assert_eq!((status, found.sources.len()), (vec![Mismatched, Good, Good], 1));
        assert_eq!(compared_within(within, &[Some(10), Some(12)], &[]).0, vec![Mismatched; 2]);
    }

    #[test]
    fn a_tolerant_source_is_counted_and_spoils_nothing() {
        let (status, found) = compared(&[Some(3), Some(4), Some(3)], &[1]);
        assert_eq!((status, found.sources.len(), found.spoils), (vec![Good; 3], 1, false));
        let (status, found) = compared(&[Some(4), Some(3)], &[0]);
        assert_eq!((status, found.sources.len(), found.spoils), (vec![Good; 2], 1, false), "it has no vote");
    }
}
