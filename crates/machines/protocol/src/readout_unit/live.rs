//! The stream of a live source: by the numbers of its front end, or by the times of its clock.

use super::{Config, stream::LiveStream, timed::TimedStream};
use evb_core::{EventCounter, EventId, SourceId, Time};

/// A live source, as its readout unit follows it.
pub(super) enum Live<B> {
    /// Fragments go to events by their numbers.
    Numbered(LiveStream<B>),
    /// Fragments go to events by their times.
    Timed(TimedStream<B>),
}

/// Does the same with each kind of stream.
macro_rules! either {
    ($live:expr, $stream:ident => $result:expr) => {
        match $live {
            Live::Numbered($stream) => $result,
            Live::Timed($stream) => $result,
        }
    };
}

impl<B> Live<B> {
    /// The stream of a source with this counter; by time if the event builder matches by time.
    pub(super) fn new(config: &Config, source: SourceId, counter: EventCounter) -> Self {
        let clock = config.coincidence.as_ref().and_then(|settings| settings.sources.get(source.index()));
        match clock {
            Some(clock) => Self::Timed(TimedStream::new(*clock, counter)),
            None => Self::Numbered(LiveStream::new(counter)),
        }
    }

    pub(super) const fn numbered(&mut self) -> Option<&mut LiveStream<B>> {
        match self {
            Self::Numbered(stream) => Some(stream),
            Self::Timed(_) => None,
        }
    }

    pub(super) const fn timed(&mut self) -> Option<&mut TimedStream<B>> {
        match self {
            Self::Timed(stream) => Some(stream),
            Self::Numbered(_) => None,
        }
    }

    /// Number of fragments that may wait for their event beside those that do, out of `most`.
    pub(super) fn room(&self, most: u64) -> u64 {
        either!(self, stream => stream.room(most))
    }

    /// Bytes of fragments that wait and count with those that are held.
    pub(super) const fn bytes(&self) -> u64 {
        match self {
            Self::Numbered(_) => 0,
            Self::Timed(stream) => stream.bytes(),
        }
    }

    /// Returns true if the source will never have this event.
    pub(super) fn never_has(&self, event: EventId) -> bool {
        either!(self, stream => stream.never_has(event))
    }

    /// The last event that counts, and whether no more will come.
    pub(super) fn available(&self) -> (u64, bool) {
        either!(self, stream => stream.available())
    }

    /// Number of fragments that came and have neither an event nor been set apart.
    pub(super) fn unplaced(&self) -> usize {
        either!(self, stream => stream.unplaced())
    }

    /// Returns true if the events of its fragments are not known.
    pub(super) const fn is_out_of_step(&self) -> bool {
        either!(self, stream => stream.is_out_of_step())
    }

    /// Returns true if the source has ended without a word.
    pub(super) fn is_gone(&self) -> bool {
        either!(self, stream => stream.is_gone())
    }

    /// The time at which the stream wants to be woken.
    pub(super) fn deadline(&self) -> Option<Time> {
        either!(self, stream => stream.deadline())
    }
}
