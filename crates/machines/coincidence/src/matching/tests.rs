//! The matching against all matchings, one by one.

use super::*;
use proptest::{collection::vec, prelude::*};

/// All matchings, as lists of pairs of hit and event.
fn all(hits: &[i64], events: &[i64], window: i64, from: (usize, usize)) -> Vec<Vec<(usize, usize)>> {
    let mut found = Vec::from([Vec::new()]);
    for hit in from.0..hits.len() {
        for event in from.1..events.len() {
            if (hits[hit] - events[event]).abs() <= window {
                found.extend(all(hits, events, window, (hit + 1, event + 1)).into_iter().map(|mut rest| {
                    rest.insert(0, (hit, event));
                    rest
                }));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn an_edge_is_taken_if_every_largest_matching_has_it(
        mut hits in vec(0_i64..60, 0..6),
        mut events in vec(0_i64..60, 0..6),
        window in 0_i64..20,
    ) {
        hits.sort_unstable();
        events.sort_unstable();
        let all = all(&hits, &events, window, (0, 0));
        let largest = all.iter().map(Vec::len).max().unwrap_or(0);
        let largest: Vec<_> = all.into_iter().filter(|one| one.len() == largest).collect();
        let mut matching = Matching::default();
        matching.decide(&hits, &events, window);
        for (hit, time) in hits.iter().enumerate() {
            let near = events.iter().any(|event| (event - time).abs() <= window);
            let taken = (0..events.len()).find(|&event| largest.iter().all(|one| one.contains(&(hit, event))));
            let expected = match taken {
                Some(event) => Decision::One(event),
                None if near => Decision::Ambiguous,
                None => Decision::None,
            };
            prop_assert_eq!(matching.hits[hit], expected, "hit {} of {:?} and {:?}", hit, hits, events);
        }
        for (event, decision) in matching.events.iter().enumerate() {
            let taken = matching.hits.iter().position(|hit| *hit == Decision::One(event));
            prop_assert_eq!(taken, if let Decision::One(hit) = decision { Some(*hit) } else { None });
        }
    }
}

#[test]
fn two_hits_of_two_events_in_one_window_are_told_apart_by_their_order() {
    let mut matching = Matching::default();
    matching.decide(&[10, 14], &[11, 15], 20);
    assert_eq!(matching.hits, [Decision::One(0), Decision::One(1)]);
    matching.decide(&[10], &[11, 15], 20);
    assert_eq!((matching.hits[0], matching.events[1]), (Decision::Ambiguous, Decision::Ambiguous));
}
