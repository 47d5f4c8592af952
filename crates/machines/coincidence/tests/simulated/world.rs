//! A world of boards with clocks of their own, and the truth about their hits.

use evb_coincidence::*;
use evb_core::{EventId, NodeId, Span, Stream, Time, stream};
use rand_xoshiro::rand_core::Rng;
use std::collections::BTreeMap;

pub(crate) const SECOND: f64 = 1e12;

/// A number in 0..1.
pub(crate) fn uniform(random: &mut Stream) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Times of a random process with this rate in hertz, in picoseconds from `begin` to `end`.
pub(crate) fn poisson(random: &mut Stream, rate: f64, begin: f64, end: f64) -> Vec<f64> {
    let (mut at, mut times) = (begin, Vec::new());
    loop {
        at -= (1.0 - uniform(random)).ln() / rate * SECOND;
        if at >= end {
            return times;
        }
        times.push(at);
    }
}

/// A board: how it sees what happens.
#[derive(Clone)]
pub(crate) struct Board {
    pub(crate) tick_fs: u64,
    /// The clock at time 0, in picoseconds.
    pub(crate) offset: f64,
    pub(crate) drift: f64,
    pub(crate) loss: f64,
    /// Rate of hits of its own, in hertz.
    pub(crate) noise: f64,
    /// Time from a hit to its arrival.
    pub(crate) delay: f64,
    /// Ticks by which a hit may be off.
    pub(crate) jitter: f64,
    /// The time from which the board delivers, and that to which it does.
    pub(crate) alive: (f64, f64),
    /// The clock leaps at this time by this, in picoseconds.
    pub(crate) leap: Option<(f64, f64)>,
}

impl Board {
    pub(crate) fn new(offset_seconds: f64, drift: f64) -> Self {
        Self {
            tick_fs: 8_000_000,
            offset: (1000.0 + offset_seconds) * SECOND,
            drift,
            loss: 0.05,
            noise: 0.0,
            delay: 0.0,
            jitter: 1.0,
            alive: (0.0, f64::MAX),
            leap: None,
        }
    }

    pub(crate) fn clock(&self) -> ClockSettings {
        ClockSettings { tick_fs: self.tick_fs, sort_depth: Span::from_micros(20), ..ClockSettings::default() }
    }

    fn ticks(&self, at: f64, random: &mut Stream) -> u64 {
        let leap = self.leap.filter(|(when, _)| at >= *when).map_or(0.0, |(_, by)| by);
        let jitter = (uniform(random) * 2.0 - 1.0) * self.jitter;
        let clock = (at * (1.0 + self.drift) + self.offset + leap) * 1000.0 / self.tick_fs as f64;
        (clock + jitter).round() as u64
    }

    /// What the board delivers of these triggers: arrival, ticks and trigger of each hit.
    pub(crate) fn hits(&self, triggers: &[f64], random: &mut Stream) -> Vec<Delivered> {
        let end = triggers.last().copied().unwrap_or(0.0);
        let mut seen: Vec<(f64, Option<usize>)> =
            triggers.iter().zip(0..).map(|(at, index)| (*at, Some(index))).collect();
        seen.retain(|_| uniform(random) >= self.loss);
        if self.noise > 0.0 {
            seen.extend(poisson(random, self.noise, 0.0, end).into_iter().map(|at| (at, None)));
        }
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        seen.retain(|(at, _)| (self.alive.0..self.alive.1).contains(at));
        seen.into_iter().map(|(at, trigger)| (at + self.delay, self.ticks(at, random), trigger)).collect()
    }
}

/// Time of the arrival, clock value, and trigger of a hit.
pub(crate) type Delivered = (f64, u64, Option<usize>);

/// What came out.
#[derive(Default)]
pub(crate) struct Heard {
    /// Events with the slot of each source.
    pub(crate) events: Vec<(i64, Vec<Slot>)>,
    pub(crate) outcomes: Vec<BTreeMap<u64, Outcome>>,
}

impl Sink for Heard {
    fn outcome(&mut self, source: usize, serial: u64, outcome: Outcome) {
        if self.outcomes.len() <= source {
            self.outcomes.resize(source + 1, BTreeMap::new());
        }
        let before = self.outcomes[source].insert(serial, outcome);
        assert_eq!(before, None, "hit {serial} of source {source} has two outcomes");
    }

    fn event(&mut self, event: EventId, time: i64, slots: &[Slot]) {
        assert_eq!(event.0 as usize, self.events.len() + 1, "events come in order");
        assert!(
            self.events.last().is_none_or(|(last, _)| *last <= time),
            "event {event} is earlier than the one before"
        );
        self.events.push((time, slots.to_vec()));
    }
}

/// A run: boards deliver to a matcher as they would to readout units with buffers of this many hits.
pub(crate) struct Run {
    pub(crate) matcher: Matcher,
    pub(crate) heard: Heard,
    pub(crate) delivered: Vec<Vec<Delivered>>,
    boards: Vec<Board>,
    buffer: usize,
    /// Boards say that they are silent, by the host's clock.
    pub(crate) says_quiet: bool,
}

impl Run {
    pub(crate) fn new(settings: &Coincidence, boards: &[Board], triggers: &[f64], seed: u64) -> Self {
        println!("seed {seed}");
        let hits = |(index, board): (usize, &Board)| board.hits(triggers, &mut stream(seed, NodeId(index as u16), 1));
        Self {
            matcher: Matcher::new(settings),
            heard: Heard::default(),
            delivered: boards.iter().enumerate().map(hits).collect(),
            boards: boards.to_vec(),
            buffer: 4096,
            says_quiet: true,
        }
    }

    /// Delivers everything in turns of this many picoseconds, and ends the sources.
    pub(crate) fn run(mut self, turn: f64) -> Self {
        let mut next = vec![0; self.boards.len()];
        let mut now = 0.0;
        for turns in 0.. {
            assert!(turns < 100_000, "it hangs: {:?}", self.matcher.deadline());
            now += turn;
            for (source, next) in next.iter_mut().enumerate() {
                self.deliver(source, next, now);
                self.matcher.advance(Time(now as u64), &mut self.heard);
            }
            let is_over = |(next, all): (&usize, &Vec<Delivered>)| *next == all.len();
            if next.iter().zip(&self.delivered).all(is_over) {
                break;
            }
        }
        (0..self.boards.len()).for_each(|source| self.matcher.end(source));
        self.matcher.advance(Time(now as u64), &mut self.heard);
        self.check_account();
        self
    }

    fn deliver(&mut self, source: usize, next: &mut usize, now: f64) {
        let (all, board) = (&self.delivered[source], &self.boards[source]);
        let room = self.buffer - self.matcher.waiting(source);
        let due = all[*next..].iter().take_while(|(at, ..)| *at <= now).count();
        let ticks: Vec<_> = all[*next..][..due.min(room)].iter().map(|(_, ticks, _)| *ticks).collect();
        self.matcher.push(source, *next as u64 + 1, &ticks);
        *next += ticks.len();
        self.matcher.set_full(source, self.matcher.waiting(source) == self.buffer);
        if *next == all.len() && board.alive.1 <= now {
            self.matcher.end(source);
        } else if due == ticks.len() && self.says_quiet {
            let seen = now - board.delay - 30e6;
            self.matcher.frontier(source, board.ticks(seen.max(0.0), &mut stream(1, NodeId(0), 1)));
        }
    }

    /// Every hit has one outcome, and slots and outcomes are the same.
    fn check_account(&self) {
        for (source, delivered) in self.delivered.iter().enumerate() {
            let counts = self.matcher.counts(source);
            assert_eq!((counts.came, counts.settled()), (delivered.len() as u64, counts.came), "{source}: {counts:?}");
            let outcomes = self.heard.outcomes.get(source).map_or(0, BTreeMap::len);
            assert_eq!(outcomes, delivered.len(), "source {source}");
        }
        let mut matched = 0;
        for (event, (_, slots)) in (1..).zip(&self.heard.events) {
            for (source, slot) in slots.iter().enumerate() {
                if let Slot::Hit(serial) = slot {
                    matched += 1;
                    assert_eq!(self.heard.outcomes[source][serial], Outcome::Event(EventId(event)));
                }
            }
        }
        let counted: u64 = (0..self.boards.len()).map(|source| self.matcher.counts(source).matched).sum();
        assert_eq!(matched, counted, "slots, and outcomes");
    }

    /// The trigger for which a hit was recorded.
    pub(crate) fn truth(&self, source: usize, serial: u64) -> Option<usize> {
        self.delivered[source][serial as usize - 1].2
    }

    /// True coincidences with the trigger source from a time on, those of them that were matched, and false ones.
    pub(crate) fn score(&self, source: usize, trigger: usize, from: f64) -> Score {
        let of_trigger: BTreeMap<_, _> =
            self.delivered[trigger].iter().filter_map(|(at, _, of)| Some((of.as_ref()?, *at))).collect();
        let is_true = |hit: &&Delivered| hit.2.is_some_and(|of| of_trigger.get(&of).is_some_and(|at| *at >= from));
        let mut score = Score { pairs: self.delivered[source].iter().filter(is_true).count(), ..Score::default() };
        for (_, slots) in &self.heard.events {
            let (Slot::Hit(hit), Slot::Hit(by)) = (slots[source], slots[trigger]) else { continue };
            let (of, event) = (self.truth(source, hit), self.truth(trigger, by));
            let is_right = of.is_some() && of == event;
            let counts = self.delivered[trigger][by as usize - 1].0 >= from;
            score.wrong += usize::from(!is_right);
            score.right += usize::from(is_right && counts);
        }
        score
    }
}

/// Pairs of hits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) pairs: usize,
    pub(crate) right: usize,
    pub(crate) wrong: usize,
}

impl Score {
    pub(crate) fn assert(self, least: f64, most_wrong: f64) {
        let (right, wrong) = (self.right as f64 / self.pairs as f64, self.wrong as f64 / self.pairs as f64);
        println!("{self:?}: {right:.5} right, {wrong:.2e} wrong");
        assert!(right >= least && wrong <= most_wrong, "{self:?}: {right:.5} right, {wrong:.2e} wrong");
    }
}

/// The settings for a trigger source 0.
pub(crate) fn by_trigger(boards: &[Board], window_ps: u64) -> Coincidence {
    Coincidence {
        rule: Rule::Trigger { source: 0, window: Span(window_ps) },
        sources: boards.iter().map(Board::clock).collect(),
        patience: Span::from_secs(5),
    }
}
