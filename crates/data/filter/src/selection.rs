//! The selection of an experiment: a chain of built-in filters, the program behind them, and the streams.

use crate::{Code, Content, Rule, rule::draw};
use evb_core::{EventId, Span};
use evb_protocol::{Built, Fragment};
use serde::{Deserialize, Serialize};

/// The index of a stream in [`Selection::streams`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamId(pub u16);

impl StreamId {
    /// The stream of accepted events for which no filter names another.
    pub const PHYSICS: Self = Self(0);

    /// The index as a place in a list.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Names of streams that every experiment knows.
pub mod streams {
    /// The stream of accepted events for which no filter names another.
    pub const PHYSICS: &str = "physics";
    /// The stream of events that a filter unit could not decide about.
    pub const QUARANTINE: &str = "quarantine";
}

/// The selection of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Seed of the run.
    pub seed: u64,
    /// The decision follows the first phase of phased building, not the end of the event. False without a second phase.
    pub phased: bool,
    /// Part of the events that phased building accepts after the first phase, by a separate draw before the chain.
    pub drawn: Option<f64>,
    /// The chain, in its order.
    pub steps: Vec<ChainStep>,
    /// The program that decides about events which the chain lets pass.
    pub units: Option<UnitsPlan>,
    /// Names of the streams: [`streams::PHYSICS`], those of filters and programs, [`streams::QUARANTINE`] if there are
    /// units, and those that get copies only.
    pub streams: Vec<String>,
}

/// A filter of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainStep {
    /// The filter itself.
    pub rule: Rule,
    /// The stream that takes what the filter accepts. Without it, the filter rejects what it does not accept.
    pub stream: Option<StreamId>,
    /// It copies what it accepts of the events that are kept into its stream, and neither takes nor rejects any.
    pub copy: bool,
    /// Part of the events that is accepted in a simulation, where the filter cannot read bytes.
    pub accept: Option<f64>,
}

/// Filter units: processes that decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitsPlan {
    /// Number of processes of each builder.
    pub units: u16,
    /// The code that they run; `None` if all filter units are remote.
    pub code: Option<Code>,
    /// Address at which builder 0 waits for filter units of other machines: host and port. Builder n has the port n
    /// above it; port 0 is any free one.
    pub listen: Option<String>,
    /// Longest wait for filter units of other machines at the end of a run.
    pub patience: Span,
    /// Longest time in which a process that has events may do nothing.
    pub timeout: Span,
    /// Most events that a process holds.
    pub events: u32,
    /// Part of the events that is accepted in a simulation.
    pub accept: Option<f64>,
    /// Processor time of an event in a simulation.
    pub time: Span,
}

/// The streams of an event that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The stream of the event.
    pub stream: StreamId,
    /// The streams that get a copy.
    pub copies: Vec<StreamId>,
}

impl Route {
    /// All streams of the event, its own first.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> {
        [self.stream].into_iter().chain(self.copies.iter().copied())
    }
}

/// The way of an event through the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A filter has rejected it.
    Rejected,
    /// A filter has taken it into this stream.
    Taken(StreamId),
    /// It has come to the end of the chain.
    Passed,
}

/// The reason why a selection cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSimulated {
    /// A filter reads bytes, and a simulation has none.
    #[error("filter {0} of the chain reads bytes, and a simulation has none")]
    Bytes(usize),
    /// A program decides, and a simulation starts none.
    #[error("a program selects the events, and a simulation starts none")]
    Program,
}

impl Selection {
    /// A selection that accepts every event.
    pub fn all(seed: u64) -> Self {
        Self {
            seed,
            phased: false,
            drawn: None,
            steps: Vec::new(),
            units: None,
            streams: vec![streams::PHYSICS.into()],
        }
    }

    /// True if nothing selects events but the draw after a first phase.
    pub const fn is_open(&self) -> bool {
        self.steps.is_empty() && self.units.is_none() && (self.phased || self.drawn.is_none())
    }

    /// The stream of events that a filter unit could not decide about.
    pub fn quarantine(&self) -> StreamId {
        StreamId(self.own_streams().len().saturating_sub(1) as u16)
    }

    /// The names of the streams that events are taken into, without those that get copies.
    pub fn own_streams(&self) -> &[String] {
        let first = self.copying().filter_map(|(_, step)| step.stream).min();
        &self.streams[..first.map_or(self.streams.len(), StreamId::index)]
    }

    /// The filters that copy, with their places.
    fn copying(&self) -> impl Iterator<Item = (usize, &ChainStep)> {
        self.placed().filter(|(_, step)| step.copy)
    }

    /// The chain with the place of each filter, which selects its draw.
    fn placed(&self) -> impl Iterator<Item = (usize, &ChainStep)> {
        (usize::from(self.drawn.is_some())..).zip(&self.steps)
    }

    /// The streams of an event that is kept in `stream`. Only complete events are copied, and none in quarantine.
    pub fn route<B: Content>(&self, stream: StreamId, event: &Built<B>) -> Route {
        let is_copied = event.complete && !(self.units.is_some() && stream == self.quarantine());
        let accepts = |(place, step): &(usize, &ChainStep)| {
            is_copied && step.rule.accepts((self.seed, *place), event.event, &event.fragments)
        };
        let copies = self.copying().filter(accepts).filter_map(|(_, step)| step.stream);
        Route { stream, copies: copies.collect() }
    }

    /// The way of an event through the chain. `complete` says that all its fragments so far are there and good. No
    /// event is rejected unseen: one that is not complete goes past all filters but [`Rule::Complete`].
    pub fn pass<B: Content>(&self, event: EventId, complete: bool, fragments: &[Option<Fragment<B>>]) -> Passage {
        let accepts = |place, rule: &Rule| Some(rule.accepts((self.seed, place), event, fragments));
        self.walk(event, complete, accepts).unwrap_or(Passage::Passed)
    }

    /// The path of an event through the chain, as [`pass`](Self::pass) returns it; `None` if a filter has to see the fragments.
    pub fn foresee(&self, event: EventId, complete: bool) -> Option<Passage> {
        self.walk(event, complete, |place, rule| rule.accepts_unseen((self.seed, place), event))
    }

    /// The way of an event past filters that accept it, or not, as `accepts` says; none as soon as it says nothing.
    fn walk(&self, event: EventId, complete: bool, accepts: impl Fn(usize, &Rule) -> Option<bool>) -> Option<Passage> {
        if complete && self.drawn.is_some_and(|accept| !draw(self.seed, 0, accept, event)) {
            return Some(Passage::Rejected);
        }
        for (place, step) in self.placed().filter(|(_, step)| !step.copy) {
            let accepted = complete && accepts(place, &step.rule)?;
            let rejects = complete || step.rule == Rule::Complete;
            match (step.stream, accepted) {
                (Some(stream), true) => return Some(Passage::Taken(stream)),
                (None, false) if rejects => return Some(Passage::Rejected),
                (None, _) | (Some(_), false) => {}
            }
        }
        Some(Passage::Passed)
    }

    /// The same selection for a simulation: filters that read bytes accept the part that they are said to.
    ///
    /// # Errors
    /// [`NotSimulated`] if a filter or a program does not say how much it accepts.
    pub fn simulated(&self) -> Result<Self, NotSimulated> {
        let step = |(index, step): (usize, &ChainStep)| match (step.accept, step.rule.reads_bytes()) {
            (Some(accept), true) => Ok(ChainStep { rule: Rule::Random { accept }, ..step.clone() }),
            (None, true) => Err(NotSimulated::Bytes(index)),
            (_, false) => Ok(step.clone()),
        };
        if self.units.as_ref().is_some_and(|units| units.accept.is_none()) {
            return Err(NotSimulated::Program);
        }
        let steps = self.steps.iter().enumerate().map(step).collect::<Result<_, _>>()?;
        Ok(Self { steps, ..self.clone() })
    }

    /// The decision of a simulated program, drawn behind all draws of the chain.
    pub fn draws_program(&self, event: EventId) -> bool {
        let accept = self.units.as_ref().and_then(|units| units.accept);
        accept.is_none_or(|accept| draw(self.seed, self.steps.len() + 1, accept, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rule: Rule, stream: Option<u16>) -> ChainStep {
        ChainStep { rule, stream: stream.map(StreamId), copy: false, accept: None }
    }

    fn pass(steps: Vec<ChainStep>, event: u64, complete: bool) -> Passage {
        Selection { steps, ..Selection::all(1) }.pass::<()>(EventId(event), complete, &[])
    }

    fn prescale(one_in: u64, stream: Option<u16>) -> ChainStep {
        step(Rule::Prescale { one_in }, stream)
    }

    #[test]
    fn filters_reject_or_take_in_their_order() {
        let chain = || vec![prescale(2, None), prescale(3, Some(4)), prescale(4, None)];
        assert_eq!(pass(chain(), 5, true), Passage::Rejected, "the first rejects");
        assert_eq!(pass(chain(), 6, true), Passage::Taken(StreamId(4)), "the last is not asked any more");
        assert_eq!(pass(chain(), 8, true), Passage::Passed);
        assert_eq!(pass(chain(), 10, true), Passage::Rejected, "the last rejects what was not taken");
        assert_eq!(pass(vec![], 1, true), Passage::Passed);
    }

    /// A filter that copies decides nothing, and has no part in events that are not complete or in quarantine.
    #[test]
    fn a_kept_event_is_copied_by_the_filters_that_accept_it() {
        let copy = ChainStep { copy: true, ..prescale(4, Some(2)) };
        let streams = ["physics", "calibration", "monitor"].map(str::to_owned).into();
        let steps = vec![copy, prescale(6, Some(1))];
        let selection = Selection { steps, streams, ..Selection::all(1) };
        let route = |stream, event, complete| {
            let (event, opened, asked) = (EventId(event), evb_core::Time::ZERO, evb_protocol::Region::ALL);
            let built = Built::<()> { event, opened, complete, asked, fragments: vec![] };
            selection.route(StreamId(stream), &built).streams().map(|stream| stream.0).collect::<Vec<_>>()
        };
        assert_eq!((route(0, 8, true), route(1, 12, true)), (vec![0, 2], vec![1, 2]));
        assert_eq!((route(0, 7, true), route(0, 8, false)), (vec![0], vec![0]));
        assert_eq!(selection.own_streams(), ["physics", "calibration"]);
        assert_eq!(selection.pass::<()>(EventId(8), true, &[]), Passage::Passed);
        assert_eq!(selection.pass::<()>(EventId(12), true, &[]), Passage::Taken(StreamId(1)));
    }

    #[test]
    fn an_incomplete_event_goes_past_all_filters_but_one() {
        let chain = || vec![prescale(1000, None), prescale(1, Some(4)), step(Rule::Random { accept: 0.0 }, None)];
        assert_eq!(pass(chain(), 1, false), Passage::Passed);
        assert_eq!(pass(vec![step(Rule::Complete, None)], 1, false), Passage::Rejected);
        assert_eq!(pass(vec![step(Rule::Complete, None)], 1, true), Passage::Passed);
        assert_eq!(pass(vec![step(Rule::Complete, Some(3))], 1, false), Passage::Passed);
        let drawn = Selection { drawn: Some(0.0), ..Selection::all(1) };
        assert_eq!(drawn.pass::<()>(EventId(1), false, &[]), Passage::Passed);
        assert_eq!(drawn.pass::<()>(EventId(1), true, &[]), Passage::Rejected);
    }

    #[test]
    fn predicted_routes_are_the_actual_ones() {
        let size = Rule::Size { source: None, at_least: Some(evb_core::ByteCount(1)), at_most: None };
        let blind = Selection { steps: vec![prescale(2, None), prescale(3, Some(4))], ..Selection::all(1) };
        let seeing = Selection { steps: vec![prescale(2, None), step(size, None)], ..Selection::all(1) };
        for event in (1..20).map(EventId) {
            for complete in [true, false] {
                assert_eq!(blind.foresee(event, complete), Some(blind.pass::<()>(event, complete, &[])));
            }
            let rejected = (event.0 % 2 == 1).then_some(Passage::Rejected);
            assert_eq!(seeing.foresee(event, true), rejected, "the second filter must see the fragments");
        }
    }

    #[test]
    fn a_simulation_draws_what_it_cannot_read_and_the_other_draws_stay() {
        let word =
            Rule::Word { source: evb_core::SourceId(0), width: crate::Width::Bits8, mask: 1, value: 1, at: None };
        let random = step(Rule::Random { accept: 0.5 }, None);
        let real = Selection { steps: vec![step(word.clone(), Some(1)), random], ..Selection::all(3) };
        assert_eq!(real.simulated(), Err(NotSimulated::Bytes(0)));
        let said = ChainStep { accept: Some(0.0), ..step(word, Some(1)) };
        let simulated = Selection { steps: vec![said, real.steps[1].clone()], ..real.clone() }.simulated().unwrap();
        let passes = |selection: &Selection, event| selection.pass::<()>(EventId(event), true, &[]);
        assert!((1..500).all(|event| passes(&real, event) == passes(&simulated, event)));
    }
}
