//! What becomes of a hit.

use evb_core::EventId;

/// What has become of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The hit belongs to this event.
    Event(EventId),
    /// Too few other sources had a hit at its time ([`Rule::Several`](crate::Rule::Several)).
    Alone,
    /// Several matchings of hits to events are equally good, and not all of them give the hit the same event; or the place
    /// of the clock is in doubt, because hits before it that should have matched did not.
    Ambiguous,
    /// No trigger was near ([`Rule::Trigger`](crate::Rule::Trigger)).
    OutOfWindow,
    /// The hit arrived when its time was over: it was further behind than the sort depth.
    Late,
    /// The place of its clock in the common time was not known.
    NotSynchronised,
}

/// The place of a source in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The serial number of the source's hit.
    Hit(u64),
    /// The source has no hit in the window.
    Missing,
    /// The source has hits in the window, and none of them belongs to the event without doubt.
    Ambiguous,
}

impl Slot {
    /// The slot of a hit that matches the event, and belongs to it or is doubted.
    pub(crate) const fn of(serial: u64, outcome: Outcome) -> Self {
        if let Outcome::Event(_) = outcome { Self::Hit(serial) } else { Self::Ambiguous }
    }
}

/// The receiver of what a [`Matcher`](crate::Matcher) has decided.
pub trait Sink {
    /// Takes the outcome of a hit, once for each hit. Those of one source come nearly in the order of its clock.
    fn outcome(&mut self, source: usize, serial: u64, outcome: Outcome);

    /// Takes an event: its time in picoseconds of the common time, and one slot for each source. Events come in the order
    /// of their numbers, and of their times. The outcomes of their hits come as well.
    fn event(&mut self, event: EventId, time: i64, slots: &[Slot]) {
        let _ = (event, time, slots);
    }
}

/// Number of hits of a source by outcome, and how often its place in time was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Hits that came.
    pub came: u64,
    /// Hits that belong to an event.
    pub matched: u64,
    /// See [`Outcome::Alone`].
    pub alone: u64,
    /// See [`Outcome::Ambiguous`].
    pub ambiguous: u64,
    /// See [`Outcome::OutOfWindow`].
    pub out_of_window: u64,
    /// See [`Outcome::Late`].
    pub late: u64,
    /// See [`Outcome::NotSynchronised`].
    pub not_synchronised: u64,
    /// Number of times that the offset was found.
    pub found: u64,
    /// Number of times that the place in time was lost.
    pub lost: u64,
    /// Number of times that the sort depth was shortened because the buffer was full.
    pub shortened: u64,
}

impl OutcomeCounts {
    pub(crate) const fn note(&mut self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Event(_) => &mut self.matched,
            Outcome::Alone => &mut self.alone,
            Outcome::Ambiguous => &mut self.ambiguous,
            Outcome::OutOfWindow => &mut self.out_of_window,
            Outcome::Late => &mut self.late,
            Outcome::NotSynchronised => &mut self.not_synchronised,
        };
        *count += 1;
    }

    /// Hits with an outcome.
    pub const fn settled(&self) -> u64 {
        let Self { matched, alone, ambiguous, out_of_window, late, not_synchronised, .. } = *self;
        matched + alone + ambiguous + out_of_window + late + not_synchronised
    }
}

/// The knowledge about the place of a source in the common time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchrony {
    /// The source was never heard.
    Unheard,
    /// The place is being sought.
    Sought,
    /// The place cannot be found: the intervals between hits are too regular.
    Regular,
    /// The place is known.
    Known,
}

/// The state of the clock of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockState {
    /// The knowledge about its place in the common time.
    pub synchrony: Synchrony,
    /// Time by which the clock falls behind the common time, per time of the clock; negative if it gains. `None` while it is
    /// not known, and for a clock that is not followed.
    pub drift: Option<f64>,
    /// Number of hits by outcome.
    pub counts: OutcomeCounts,
}
