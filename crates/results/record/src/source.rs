//! Live sources of a run: their states, and those that a run waits for.

use crate::ReadoutRecord;
use serde::{Deserialize, Serialize};

/// Time in seconds for which other sources have sent on before a silent source holds the run up.
const SENDS_ON_S: f64 = 1.0;

/// The state of a live source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// No front end has connected, and no datagram has come.
    #[default]
    NeverConnected,
    /// A front end is connected and has sent no fragment in this run.
    Connected,
    /// Fragments come.
    Sending,
    /// The front end is connected, and its fragments have stopped.
    Silent,
    /// The front end closed its connection without an end of run.
    Disconnected,
    /// Fragments come, and it is not known to which events they belong.
    OutOfStep,
    /// The front end has announced the end of its run.
    Ended,
}

impl SourceState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::NeverConnected,
        Self::Connected,
        Self::Sending,
        Self::Silent,
        Self::Disconnected,
        Self::OutOfStep,
        Self::Ended,
    ];

    /// The state as JSON has it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::NeverConnected => "never_connected",
            Self::Connected => "connected",
            Self::Sending => "sending",
            Self::Silent => "silent",
            Self::Disconnected => "disconnected",
            Self::OutOfStep => "out_of_step",
            Self::Ended => "ended",
        }
    }

    /// The state in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverConnected => "never connected",
            Self::Connected => "connected, has sent nothing",
            Self::Sending => "sending",
            Self::Silent => "silent",
            Self::Disconnected => "disconnected",
            Self::OutOfStep => "out of step",
            Self::Ended => "ended",
        }
    }
}

/// A live source at the time of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Its state.
    pub state: SourceState,
    /// Time since which it has this state, in seconds from the start of the run.
    pub since_s: f64,
    /// Address of the front end that sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Fragments per second, over the last second.
    pub rate_hz: f64,
    /// Time of its last fragment, in seconds from the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// Event counter of its last fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_counter: Option<u64>,
    /// Mark of its last fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_mark: Option<u32>,
    /// Datagrams of the front end that its host has lost in the run, because the buffer of the socket was full. `None` for other
    /// sources, and where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// What the front end has said to run control, if it hears run control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<FrontEndRecord>,
}

/// What is known of the place of a clock in the common time of all clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockPlace {
    /// Nothing has come with this clock.
    #[default]
    Unheard,
    /// The place is being looked for.
    Sought,
    /// The place cannot be found: the intervals between the fragments are too regular.
    Regular,
    /// The place is known.
    Known,
}

/// The clock of a source whose fragments are matched by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// Its place in the common time at the time of the record.
    pub place: ClockPlace,
    /// Number of times that the place was found.
    pub found: u64,
    /// Number of times that the place was lost.
    pub lost: u64,
    /// Time by which the clock falls behind the common time, in millionths; negative if it gains. `None` if it is not followed or
    /// its place is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
}

/// What a front end has said to run control by itself, over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FrontEndRecord {
    /// It is busy at the time of the record.
    pub busy: bool,
    /// Number of times that it became busy.
    pub vetoes: u64,
    /// Time for which it was busy, in seconds.
    pub busy_s: f64,
    /// Number of problems that it has reported.
    pub problems: u64,
}

/// A source that a run waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingSource {
    /// Name of the source, such as `ru2`.
    pub source: String,
    /// Its state.
    pub state: SourceState,
    /// Time since which it has this state, in seconds from the start of the run.
    pub since_s: f64,
}

impl WaitingSource {
    /// The source with its state, as in "ru2 (never connected)".
    pub fn text(&self) -> String {
        format!("{} ({})", self.source, self.state.name())
    }
}

/// The sources that a run waits for, `now_s` seconds after its start: those that never connected, are disconnected or out
/// of step, and those that are silent while others send on. When all are silent, as between two spills, none is waited for.
pub fn waiting_sources<'a>(
    readouts: impl Iterator<Item = &'a ReadoutRecord> + Clone,
    now_s: f64,
) -> Vec<WaitingSource> {
    let sources = || readouts.clone().enumerate().filter_map(|(unit, readout)| Some((unit, readout.source.as_ref()?)));
    let sends_on = |than: &SourceRecord| {
        sources().any(|(_, other)| {
            let is_long = now_s - other.since_s >= SENDS_ON_S;
            other.state == SourceState::Sending && is_long && other.last_s >= than.last_s.map(|last| last + SENDS_ON_S)
        })
    };
    let is_waited_for = |source: &SourceRecord| match source.state {
        SourceState::Sending => false,
        SourceState::NeverConnected | SourceState::Disconnected | SourceState::OutOfStep => true,
        SourceState::Connected | SourceState::Silent | SourceState::Ended => sends_on(source),
    };
    sources()
        .filter(|(_, source)| is_waited_for(source))
        .map(|(unit, source)| WaitingSource {
            source: format!("ru{unit}"),
            state: source.state,
            since_s: source.since_s,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use SourceState::{Connected, Disconnected, Ended, NeverConnected, OutOfStep, Sending, Silent};

    /// The sources that are waited for 10 s after the start.
    fn waiting(sources: &[(SourceState, f64, Option<f64>)]) -> Vec<String> {
        let readout = |&(state, since_s, last_s): &(SourceState, f64, Option<f64>)| ReadoutRecord {
            source: Some(SourceRecord { state, since_s, last_s, ..SourceRecord::default() }),
            ..ReadoutRecord::default()
        };
        let readouts: Vec<_> = sources.iter().map(readout).chain([ReadoutRecord::default()]).collect();
        waiting_sources(readouts.iter(), 10.0).iter().map(WaitingSource::text).collect()
    }

    #[test]
    fn sources_that_hold_a_run_up_are_waited_for() {
        let sending = (Sending, 0.0, Some(10.0));
        let none: [String; 0] = [];
        assert_eq!(waiting(&[sending, (NeverConnected, 0.0, None)]), ["ru1 (never connected)"]);
        assert_eq!(waiting(&[sending, (Disconnected, 9.9, Some(9.9))]), ["ru1 (disconnected)"]);
        assert_eq!(waiting(&[sending, (OutOfStep, 9.9, Some(9.9))]), ["ru1 (out of step)"]);
        assert_eq!(waiting(&[(Silent, 8.0, Some(8.0)), sending]), ["ru0 (silent)"]);
        assert_eq!(waiting(&[(Connected, 0.0, None), sending]), ["ru0 (connected, has sent nothing)"]);
        assert_eq!(waiting(&[(Ended, 5.0, Some(5.0)), sending]), ["ru0 (ended)"]);
        assert_eq!(waiting(&[sending, sending]), none);
    }

    #[test]
    fn no_source_is_waited_for_between_spills() {
        let none: [String; 0] = [];
        assert_eq!(waiting(&[(Silent, 8.0, Some(8.0)), (Silent, 8.1, Some(8.1))]), none);
        // The first fragment of the next spill.
        assert_eq!(waiting(&[(Silent, 2.0, Some(2.0)), (Sending, 9.9, Some(10.0))]), none);
        assert_eq!(waiting(&[(Ended, 9.5, Some(9.5)), (Sending, 0.0, Some(10.0))]), none);
    }
}
