//! The matching of hits to events by their times: for boards whose counters differ, or that have none.
//!
//! Every source has a clock of its own, with its tick, its beginning and its rate. A [`Matcher`] takes the clock values
//! of the hits of all sources, in the order of their arrival. It says of each hit which event it belongs to, or why it
//! belongs to none: [`Outcome`].
//!
//! - A [`Rule`] says what an event is: a hit of the trigger source, or hits of enough sources together.
//! - *A doubt is never resolved silently.* A hit belongs to an event only if it does so in every largest matching of its
//!   source's hits to the events around it. The others are [`Outcome::Ambiguous`].
//! - *The offset of a clock is found* by the intervals between hits, which a random process never repeats. Hits at equal
//!   intervals tell nothing, so such a source stays without events. A place is never guessed.
//! - *The drift of a clock is followed* by the hits that belong to events. A source that belongs to none for long has lost
//!   its place, and is sought again.
//! - *A source is waited for* until its frontier has passed: the time before which no more hits come. Nobody waits for a
//!   source whose place is unknown for longer than the patience, nor when no further hit can tell it.
//!
//! The common time is that of the reference: the trigger source, or the first source whose place is known. It reaches
//! 106 days in picoseconds.
//!
//! # Example
//! A trigger source with ticks of 8 ns, and another source with ticks of 10 ns that began 1 us later.
//!
//! ```
//! use evb_coincidence::{ClockOffset, ClockSettings, Coincidence, Matcher, Outcome, Rule, Sink, Slot};
//! use evb_core::{EventId, Span, Time};
//!
//! #[derive(Default)]
//! struct Events(Vec<(EventId, Vec<Slot>)>);
//!
//! impl Sink for Events {
//!     fn outcome(&mut self, _source: usize, _serial: u64, _outcome: Outcome) {}
//!     fn event(&mut self, event: EventId, _time: i64, slots: &[Slot]) {
//!         self.0.push((event, slots.to_vec()));
//!     }
//! }
//!
//! let clock = |tick_fs, picoseconds| ClockSettings {
//!     tick_fs,
//!     offset: ClockOffset::Known { seconds: 0, picoseconds },
//!     ..ClockSettings::default()
//! };
//! let mut matcher = Matcher::new(&Coincidence {
//!     rule: Rule::Trigger { source: 0, window: Span(50_000) },
//!     sources: vec![clock(8_000_000, 0), clock(10_000_000, 1_000_000)],
//!     patience: Span::from_secs(5),
//! });
//! matcher.push(0, 1, &[1000, 2000]); // at 8 us and 16 us
//! matcher.push(1, 1, &[702, 1200]); // at 8.02 us and 13 us
//! (0..2).for_each(|source| matcher.end(source));
//! let mut events = Events::default();
//! matcher.advance(Time::ZERO, &mut events);
//! assert_eq!(events.0[0], (EventId(1), vec![Slot::Hit(1), Slot::Hit(1)]));
//! assert_eq!(events.0[1], (EventId(2), vec![Slot::Hit(2), Slot::Missing]));
//! assert_eq!(matcher.counts(1).out_of_window, 1);
//! ```
#![no_std]

extern crate alloc;

mod matcher;
mod matching;
mod outcome;
mod search;
mod settings;
mod source;
mod tracking;
mod trust;

pub use matcher::Matcher;
pub use outcome::{ClockState, Outcome, OutcomeCounts, Sink, Slot, Synchrony};
pub use settings::{ClockOffset, ClockSettings, Coincidence, Rule};
