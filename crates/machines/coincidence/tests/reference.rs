//! The matcher against the plainest one that keeps its rules: all hits of few sources are known at once, and every
//! matching of a group is tried.

use evb_coincidence::*;
use evb_core::{EventId, Span, Time};
use proptest::{collection::vec, prelude::*};

/// The outcomes of a run by source and serial number, and its events.
#[derive(Default)]
struct Heard {
    outcomes: Vec<Vec<Option<Outcome>>>,
    events: Vec<(i64, Vec<Slot>)>,
}

impl Sink for Heard {
    fn outcome(&mut self, source: usize, serial: u64, outcome: Outcome) {
        let place = &mut self.outcomes[source][serial as usize - 1];
        assert_eq!(place.replace(outcome), None, "two outcomes");
    }

    fn event(&mut self, event: EventId, time: i64, slots: &[Slot]) {
        self.events.push((time, slots.to_vec()));
        assert_eq!(event.0 as usize, self.events.len());
    }
}

/// Clocks of one tick in a nanosecond.
fn settings(rule: Rule, sources: usize, depth_ns: u64) -> Coincidence {
    let clock = ClockSettings {
        offset: ClockOffset::Known { seconds: -1, picoseconds: 0 },
        sort_depth: Span(depth_ns * 1000),
        ..ClockSettings::default()
    };
    Coincidence { rule, sources: vec![clock; sources], patience: Span::from_secs(1) }
}

/// Delivers the hits in turns of a few, one source after the other.
fn run(settings: &Coincidence, hits: &[Vec<u64>], turn: usize) -> Heard {
    let mut matcher = Matcher::new(settings);
    let mut heard = Heard { outcomes: hits.iter().map(|hits| vec![None; hits.len()]).collect(), ..Heard::default() };
    for begin in (0..hits.iter().map(Vec::len).max().unwrap_or(0)).step_by(turn) {
        for (source, hits) in hits.iter().enumerate() {
            let ticks: Vec<_> = hits.iter().skip(begin).take(turn).map(|hit| hit + 1_000_000_000).collect();
            matcher.push(source, begin as u64 + 1, &ticks);
            matcher.advance(Time::ZERO, &mut heard);
        }
    }
    (0..hits.len()).for_each(|source| matcher.end(source));
    matcher.advance(Time::ZERO, &mut heard);
    heard
}

/// All matchings of the hits to the events of a group, in order.
fn matchings(hits: &[(u64, usize)], events: &[(u64, usize)], window: u64) -> Vec<Vec<(usize, usize)>> {
    let (Some((hit, hits)), true) = (hits.split_first(), !events.is_empty()) else { return vec![Vec::new()] };
    let mut found = matchings(hits, events, window);
    for (index, event) in events.iter().enumerate().filter(|(_, event)| event.0.abs_diff(hit.0) <= window) {
        let rest = matchings(hits, &events[index + 1..], window);
        found.extend(rest.into_iter().map(|mut rest| {
            rest.push((hit.1, event.1));
            rest
        }));
    }
    found
}

/// The outcome of every hit of a source by the rule of a trigger source.
fn expected(triggers: &[u64], hits: &[u64], window: u64) -> Vec<Outcome> {
    let sorted = |times: &[u64]| {
        let mut sorted: Vec<_> = times.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        sorted
    };
    let (triggers, hits) = (sorted(triggers), sorted(hits));
    let numbered: Vec<_> = triggers.iter().zip(0..).map(|((time, _), event)| (*time, event)).collect();
    let all = matchings(&hits, &numbered, window);
    let largest = all.iter().map(Vec::len).max().unwrap_or(0);
    let largest: Vec<_> = all.into_iter().filter(|one| one.len() == largest).collect();
    let mut outcomes = vec![Outcome::OutOfWindow; hits.len()];
    for (time, hit) in &hits {
        let near = numbered.iter().any(|(event, _)| event.abs_diff(*time) <= window);
        let taken = numbered.iter().find(|(_, event)| largest.iter().all(|one| one.contains(&(*hit, *event))));
        outcomes[*hit] = match taken {
            Some((_, event)) => Outcome::Event(EventId(*event as u64 + 1)),
            None if near => Outcome::Ambiguous,
            None => Outcome::OutOfWindow,
        };
    }
    outcomes
}

proptest! {
    #[test]
    fn hits_get_the_outcomes_of_the_rule(
        triggers in vec(1000_u64..1100, 0..6),
        hits in vec(vec(1000_u64..1100, 0..6), 1..3),
        window in 0_u64..15,
        turn in 1_usize..7,
    ) {
        let rule = Rule::Trigger { source: 0, window: Span(window * 1000) };
        let mut all = vec![triggers.clone()];
        all.extend(hits);
        // Everything may come in any order, so nothing is late.
        let heard = run(&settings(rule, all.len(), 200), &all, turn);
        prop_assert_eq!(heard.events.len(), triggers.len());
        for (source, hits) in all.iter().enumerate().skip(1) {
            let outcomes: Vec<_> = heard.outcomes[source].iter().copied().map(|outcome| outcome.unwrap()).collect();
            // Without a trigger there is no time to which hits could be compared.
            if !triggers.is_empty() {
                prop_assert_eq!(outcomes, expected(&triggers, hits, window), "source {} of {:?}", source, all);
            }
        }
    }

    #[test]
    fn no_hit_is_lost_or_given_twice_whatever_comes(
        hits in vec(vec(0_u64..10_000, 0..60), 2..5),
        window in 0_u64..400,
        depth in 0_u64..3000,
        turn in 1_usize..20,
        fewest in prop::option::of(1_u16..4),
    ) {
        let window = Span(window * 1000);
        let rule = fewest.map_or(Rule::Trigger { source: 0, window }, |sources| Rule::Several { sources, window });
        let heard = run(&settings(rule, hits.len(), depth), &hits, turn);
        prop_assert!(heard.events.is_sorted_by_key(|(time, _)| *time), "events in the order of their times");
        for (source, outcomes) in heard.outcomes.iter().enumerate() {
            prop_assert!(outcomes.iter().all(Option::is_some), "source {source}: {outcomes:?}");
            let events = outcomes.iter().zip(1..).filter_map(|(outcome, serial)| match outcome {
                Some(Outcome::Event(event)) => Some((*event, serial)),
                _ => None,
            });
            for (event, serial) in events {
                prop_assert_eq!(heard.events[event.0 as usize - 1].1[source], Slot::Hit(serial));
            }
        }
    }

    #[test]
    fn events_of_several_sources_have_enough_of_them(
        hits in vec(vec(0_u64..2000, 0..40), 2..5),
        window in 0_u64..60,
        fewest in 1_u16..4,
    ) {
        let rule = Rule::Several { sources: fewest, window: Span(window * 1000) };
        let heard = run(&settings(rule, hits.len(), 3000), &hits, 5);
        for (_, slots) in &heard.events {
            let present = slots.iter().filter(|slot| **slot != Slot::Missing).count();
            prop_assert!(present >= fewest.into(), "{slots:?}");
            let hit = |(hits, slot): (&Vec<u64>, &Slot)| match slot {
                Slot::Hit(serial) => Some(hits[*serial as usize - 1]),
                _ => None,
            };
            let times = || hits.iter().zip(slots).filter_map(hit);
            let width = times().max().unwrap_or(0) - times().min().unwrap_or(0);
            prop_assert!(width <= window, "{width} ns");
        }
        // A hit is alone only if no window from it on has enough sources.
        let late = heard.outcomes.iter().flatten().filter(|outcome| **outcome == Some(Outcome::Late)).count();
        prop_assert_eq!(late, 0, "the sort depth is longer than everything");
        for (source, outcomes) in heard.outcomes.iter().enumerate() {
            for (serial, outcome) in outcomes.iter().enumerate() {
                if *outcome == Some(Outcome::Alone) {
                    let first = hits[source][serial];
                    let unused = |(other, hits): (&Vec<Option<Outcome>>, &Vec<u64>)| {
                        hits.iter().zip(other).any(|(hit, outcome)| {
                            (first..=first + window).contains(hit) && *outcome == Some(Outcome::Alone)
                        })
                    };
                    let together = heard.outcomes.iter().zip(&hits).filter(|pair| unused(*pair)).count();
                    prop_assert!(together < usize::from(fewest), "{together} sources are alone together");
                }
            }
        }
    }
}
