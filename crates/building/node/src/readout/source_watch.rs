//! The state of a live source over time.

use evb_core::{Mark, Span, Time};
use evb_record::{SourceRecord, SourceState};
use evb_sources::Connections;

/// Interval between two looks.
const LOOK: Span = Span::from_millis(50);
/// Time over which the rate is taken.
const WINDOW: Span = Span::from_secs(1);
/// Shortest time without a fragment after which a source is silent.
const SHORTEST_SILENCE: Span = Span::from_secs(1);
/// The same in mean intervals between its fragments: a slow source is not silent between two of them.
const SILENT_INTERVALS: u64 = 5;
/// Longest time without a fragment until a source is silent.
const LONGEST_SILENCE: Span = Span::from_secs(60);

/// Follows a live source.
#[derive(Debug, Default)]
pub(super) struct SourceWatch {
    /// Start of the run.
    start: Time,
    state: SourceState,
    since: Time,
    next_look: Time,
    connections: Connections,
    last: Option<LastFragment>,
    /// Fragments of the run.
    came: u64,
    /// Mean time between fragments, smoothed.
    interval: Span,
    /// The rate in fragments per second, and the time and the fragments at the begin of the window that follows.
    rate_hz: f64,
    window: (Time, u64),
    has_ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct LastFragment {
    at: Time,
    counter: u64,
    mark: Option<Mark>,
}

impl SourceWatch {
    /// Begins a run. A source that has ended in the run before stays ended.
    pub(super) fn begin(&mut self, now: Time) {
        let Self { connections, has_ended, state, interval, .. } = *self;
        *self = Self {
            start: now,
            since: now,
            window: (now, 0),
            connections,
            has_ended,
            state,
            interval,
            ..Self::default()
        };
    }

    #[inline]
    pub(super) fn note_fragment(&mut self, now: Time, counter: u64, mark: Option<Mark>) {
        if let Some(last) = self.last {
            // A moving mean over about eight fragments.
            self.interval = Span((self.interval.0 * 7 + now.since(last.at).0) / 8);
        }
        self.last = Some(LastFragment { at: now, counter, mark });
        self.came += 1;
    }

    pub(super) const fn note_end(&mut self) {
        self.has_ended = true;
    }

    /// Looks at the source if it is time: its connections, and whether it is out of step.
    #[inline]
    pub(super) fn look(&mut self, now: Time, source: impl FnOnce() -> (Connections, bool)) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        let (connections, is_out_of_step) = source();
        self.connections = connections;
        self.take_rate(now);
        let state = self.state_at(now, is_out_of_step);
        if state != self.state {
            self.state = state;
            self.since = match (state, self.last) {
                (SourceState::Silent, Some(last)) => last.at,
                _ => now,
            };
        }
    }

    fn state_at(&self, now: Time, is_out_of_step: bool) -> SourceState {
        let Connections { any, open, .. } = self.connections;
        let silence = Span(self.interval.0 * SILENT_INTERVALS).clamp(SHORTEST_SILENCE, LONGEST_SILENCE);
        match self.last {
            _ if self.has_ended => SourceState::Ended,
            _ if !any => SourceState::NeverConnected,
            _ if !open => SourceState::Disconnected,
            _ if is_out_of_step => SourceState::OutOfStep,
            None => SourceState::Connected,
            Some(last) if now.since(last.at) >= silence => SourceState::Silent,
            Some(_) => SourceState::Sending,
        }
    }

    fn take_rate(&mut self, now: Time) {
        let (since, before) = self.window;
        let passed = now.since(since);
        if passed >= WINDOW {
            self.rate_hz = (self.came - before) as f64 / passed.as_secs_f64();
            self.window = (now, self.came);
        }
    }

    /// The source as the record has it.
    pub(super) fn record(&self) -> SourceRecord {
        let seconds = |at: Time| at.since(self.start).as_secs_f64();
        SourceRecord {
            state: self.state,
            since_s: seconds(self.since),
            peer: self.connections.peer.map(|peer| peer.to_string()),
            rate_hz: self.rate_hz,
            last_s: self.last.map(|last| seconds(last.at)),
            last_counter: self.last.map(|last| last.counter),
            last_mark: self.last.and_then(|last| last.mark).map(Mark::value),
            lost: None,
            control: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SourceState::{Connected, Disconnected, Ended, NeverConnected, OutOfStep, Sending, Silent};

    const CONNECTED: Connections = Connections { any: true, open: true, peer: None };
    const CLOSED: Connections = Connections { any: true, open: false, peer: None };

    /// A source whose run began at 1 s.
    fn watch() -> SourceWatch {
        let mut watch = SourceWatch::default();
        watch.begin(at(0.0));
        watch
    }

    /// A time of the run.
    fn at(seconds: f64) -> Time {
        Time::ZERO + Span::from_micros(((1.0 + seconds) * 1e6).round() as u64)
    }

    /// The state and its begin, after a look at this time.
    fn seen(watch: &mut SourceWatch, seconds: f64, connections: Connections) -> (SourceState, f64) {
        watch.look(at(seconds), || (connections, false));
        let SourceRecord { state, since_s, .. } = watch.record();
        (state, (since_s * 1e3).round() / 1e3)
    }

    #[test]
    fn every_state_is_seen_with_its_begin() {
        let mut watch = watch();
        assert_eq!(seen(&mut watch, 0.5, Connections::default()), (NeverConnected, 0.0));
        assert_eq!(seen(&mut watch, 1.0, CONNECTED), (Connected, 1.0));
        for tick in 0..100 {
            watch.note_fragment(at(1.5 + f64::from(tick) * 0.01), 70 + tick as u64, None);
        }
        assert_eq!(seen(&mut watch, 2.5, CONNECTED), (Sending, 2.5));
        assert_eq!((watch.record().last_counter, watch.record().rate_hz), (Some(169), 100.0 / 1.5));
        assert_eq!(seen(&mut watch, 3.4, CONNECTED), (Sending, 2.5));
        assert_eq!(seen(&mut watch, 3.5, CONNECTED), (Silent, 2.49));
        watch.look(at(4.0), || (CONNECTED, true));
        assert_eq!(watch.record().state, OutOfStep);
        assert_eq!(seen(&mut watch, 5.0, CLOSED), (Disconnected, 5.0));
        watch.note_end();
        assert_eq!(seen(&mut watch, 6.0, CLOSED), (Ended, 6.0));
        watch.begin(at(9.0));
        assert_eq!(watch.record().last_counter, None);
    }

    #[test]
    fn a_slow_source_is_not_silent_between_two_fragments() {
        let mut watch = watch();
        for fragment in 0..20_u32 {
            let seconds = f64::from(fragment) * 2.0;
            watch.note_fragment(at(seconds), fragment.into(), None);
            if fragment > 5 {
                assert_eq!(seen(&mut watch, seconds + 1.9, CONNECTED).0, Sending, "{fragment}");
            }
        }
        assert_eq!(seen(&mut watch, 48.5, CONNECTED), (Silent, 38.0));
    }
}
