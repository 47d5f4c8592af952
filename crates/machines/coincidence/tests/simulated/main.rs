//! Boards with clocks of their own: what is matched of the truth, and what happens in trouble.

mod world;

use evb_coincidence::*;
use evb_core::{NodeId, Span, stream};
use world::*;

/// Half a window of four ticks.
const WINDOW: u64 = 32_000;

/// Dead time of the trigger in picoseconds. Triggers that are closer than the jitter of clocks cannot be told apart.
const DEAD_TIME: f64 = 50_000.0;

fn triggers(rate: f64, seconds: f64, seed: u64) -> Vec<f64> {
    let mut triggers = poisson(&mut stream(seed, NodeId(99), 2), rate, 0.0, seconds * SECOND);
    triggers.dedup_by(|next, last| *next - *last < DEAD_TIME);
    triggers
}

/// Boards with offsets of seconds of either sign and drifts of 1e-5, where 5 % of hits are lost and 1 % are noise.
fn boards(count: usize, rate: f64) -> Vec<Board> {
    let board = |index: usize| {
        let sign = if index.is_multiple_of(2) { 1.0 } else { -1.0 };
        let offset = sign * (index as f64 * 1.1 + 0.123_456_789) * f64::from(u8::from(index > 0));
        Board { noise: rate * 0.01, delay: index as f64 * 1e8, ..Board::new(offset, sign * 1e-5) }
    };
    (0..count).map(board).collect()
}

#[test]
fn ten_boards_at_100_khz_are_matched() {
    let (boards, triggers) = (boards(10, 1e5), triggers(1e5, 2.0, 7));
    let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 7).run(1e9);
    for source in 1..10 {
        assert_eq!((run.matcher.counts(source).found, run.matcher.counts(source).lost), (1, 0));
        run.score(source, 0, 0.0).assert(0.999, 1e-4);
    }
}

#[test]
fn three_boards_at_500_hz_are_matched() {
    let (boards, triggers) = (boards(3, 500.0), triggers(500.0, 60.0, 8));
    let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 8).run(1e10);
    (1..3).for_each(|source| run.score(source, 0, 0.0).assert(0.999, 1e-4));
}

#[test]
fn boards_without_a_trigger_source_are_matched() {
    let (boards, triggers) = (boards(4, 2e4), triggers(2e4, 2.0, 9));
    let rule = Rule::Several { sources: 2, window: Span(2 * WINDOW) };
    let run = Run::new(&Coincidence { rule, ..by_trigger(&boards, 0) }, &boards, &triggers, 9).run(1e9);
    (1..4).for_each(|source| run.score(source, 0, 0.0).assert(0.99, 1e-3));
}

#[test]
fn a_regular_pulser_is_not_guessed() {
    let boards = boards(3, 1000.0);
    let pulses: Vec<_> = (1..20_000).map(|pulse| f64::from(pulse) * 1e9).collect();
    let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &pulses, 10).run(1e10);
    for source in 1..3 {
        assert_eq!(run.matcher.clock(source).synchrony, Synchrony::Regular);
        let counts = run.matcher.counts(source);
        assert_eq!((counts.found, counts.not_synchronised), (0, counts.came), "{counts:?}");
    }
    assert_eq!(run.heard.events.len() as u64, run.matcher.counts(0).came, "the trigger source goes on");
}

#[test]
fn a_pulser_without_losses_is_not_guessed() {
    let boards = vec![Board { loss: 0.0, jitter: 0.0, ..Board::new(0.0, 0.0) }; 2];
    let pulses: Vec<_> = (1..20_000).map(|pulse| f64::from(pulse) * 1e9).collect();
    let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &pulses, 11).run(1e10);
    assert_eq!((run.matcher.counts(1).found, run.matcher.counts(1).matched), (0, 0));
}

#[test]
fn a_clock_that_leaps_is_found_again() {
    for by in [-3.3, -0.000_05, 0.000_05, 2.7, 3e7] {
        let mut boards = boards(3, 1e4);
        boards[1].leap = Some((2.0 * SECOND, by * SECOND));
        let triggers = triggers(1e4, 6.0, 12);
        let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 12).run(1e9);
        let counts = run.matcher.counts(1);
        println!("{by} s: {counts:?}");
        assert_eq!((counts.found, counts.lost), (2, 1), "{by} s: {counts:?}");
        run.score(1, 0, 3.0 * SECOND).assert(0.999, 1e-4);
        run.score(2, 0, 0.0).assert(0.999, 1e-4);
    }
}

/// The window holds a hit of another trigger in one of a hundred cases. Without doubt, these would keep a wrong place alive.
#[test]
fn after_a_leap_hardly_any_hit_is_matched_wrongly() {
    let mut wrong = 0;
    for seed in 20..30 {
        let mut boards = boards(2, 2e4);
        boards[1].leap = Some((0.5 * SECOND, 0.001 * SECOND));
        let run = Run::new(&by_trigger(&boards, 250_000), &boards, &triggers(2e4, 1.0, seed), seed).run(1e9);
        assert_eq!((run.matcher.counts(1).found, run.matcher.counts(1).lost), (2, 1));
        let near = run.heard.events.iter().filter(|(_, slots)| slots[1] != Slot::Missing).count();
        assert!(near > 10_000);
        wrong += run.score(1, 0, 0.0).wrong;
    }
    println!("{wrong} of ten leaps");
    assert!(wrong <= 5, "{wrong} wrong matches");
}

#[test]
fn a_trigger_clock_that_leaps_is_found_again() {
    for by in [-3.3, 2.7, 3e7] {
        let mut boards = boards(3, 1e4);
        boards[0].leap = Some((2.0 * SECOND, by * SECOND));
        let triggers = triggers(1e4, 15.0, 13);
        let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 13).run(1e9);
        println!("{by} s: {:?}", run.matcher.counts(0));
        (1..3).for_each(|source| run.score(source, 0, 10.0 * SECOND).assert(0.999, 1e-4));
    }
}

#[test]
fn a_pause_does_no_harm() {
    let (boards, mut triggers) = (boards(3, 1e4), triggers(1e4, 3.0, 14));
    triggers.iter_mut().filter(|at| **at > SECOND).for_each(|at| *at += 2.0 * SECOND);
    let mut run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 14);
    run.delivered.iter_mut().for_each(|hits| hits.retain(|hit| hit.2.is_some()));
    let run = run.run(1e9);
    for source in 1..3 {
        assert_eq!(run.matcher.counts(source).found, 1);
        run.score(source, 0, 0.0).assert(0.999, 1e-4);
    }
}

#[test]
fn a_board_that_dies_holds_up_nothing() {
    let (mut boards, triggers) = (boards(3, 1e4), triggers(1e4, 2.0, 15));
    boards[1].alive.1 = SECOND;
    let run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 15).run(1e9);
    run.score(2, 0, 0.0).assert(0.999, 1e-4);
    run.score(1, 0, 0.0).assert(0.999, 1e-4);
}

#[test]
fn a_board_that_comes_late_is_found() {
    let (mut boards, triggers) = (boards(3, 1e4), triggers(1e4, 4.0, 16));
    boards[1].alive.0 = 2.0 * SECOND;
    let mut settings = by_trigger(&boards, WINDOW);
    settings.patience = Span::from_millis(500);
    let run = Run::new(&settings, &boards, &triggers, 16).run(1e9);
    run.score(2, 0, 0.0).assert(0.999, 1e-4);
    run.score(1, 0, 2.1 * SECOND).assert(0.999, 1e-4);
}

#[test]
fn a_silent_board_is_waited_for_until_another_is_full() {
    let (boards, triggers) = (boards(3, 1e4), triggers(1e4, 2.0, 17));
    let mut run = Run::new(&by_trigger(&boards, WINDOW), &boards, &triggers, 17);
    run.delivered[1].truncate(1000);
    let run = run.run(1e9);
    run.score(2, 0, 0.0).assert(0.999, 1e-4);
}

#[test]
fn a_buffer_shorter_than_the_sort_depth_is_no_deadlock() {
    let (boards, triggers) = (boards(2, 1e5), triggers(1e5, 1.0, 18));
    let mut settings = by_trigger(&boards, WINDOW);
    settings.sources.iter_mut().for_each(|clock| clock.sort_depth = Span::from_secs(10));
    let mut run = Run::new(&settings, &boards, &triggers, 18);
    run.says_quiet = false;
    let run = run.run(1e9);
    assert!(run.matcher.counts(0).shortened > 0);
    run.score(1, 0, 0.0).assert(0.998, 1e-4);
}
