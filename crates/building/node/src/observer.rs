//! Observers of runs.

use crate::sample::Sample;
use evb_control::{Command, RunState};
use evb_core::NodeId;
use evb_record::Histogram;
use evb_unit::Progress;

/// An observer of a run that may also command it.
pub trait Observer {
    /// Takes the progress of the run, several times a second.
    fn progress(&mut self, progress: &Progress);
    /// Takes a text that the user should read now.
    fn note(&mut self, text: &str);
    /// Takes the state that run control has entered.
    fn state(&mut self, _state: RunState) {}
    /// Takes a copy of an event, where the plan has samples.
    fn sample(&mut self, _builder: NodeId, _sample: &Sample) {}
    /// Takes the histograms of the run so far, about once a second, where the plan has some.
    fn histograms(&mut self, _histograms: &[Histogram]) {}
    /// Gives the next command of the operator, if there is one.
    fn command(&mut self) -> Option<Command> {
        None
    }
}

/// An observer that only waits for the record.
impl Observer for () {
    fn progress(&mut self, _progress: &Progress) {}
    fn note(&mut self, _text: &str) {}
}
