//! The filter units of one builder: processes that decide about events, each kept by a thread of its own.
//!
//! A thread gives its process some events, waits for the verdicts, and gives the next ones. A process that crashes, hangs
//! or answers nonsense is started again, and has these events again, one by one: only the one at fault goes into
//! quarantine. No call of the node waits for a process.

use crate::{
    Hello, StreamId, UnitsPlan,
    area::{self, Area},
};
use bytes::Bytes;
use evb_core::{EventId, Span};
use evb_protocol::Built;
use keeper::Keeper;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    ops::AddAssign,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

mod keeper;
mod process;
mod spawn;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use spawn::spawn;

/// The memory in which filter units read their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Each has an area of so many bytes. It takes the memory that its events have needed so far.
    Area(u64),
    /// They have none, and read events from their pipes.
    Pipe,
}

impl Memory {
    /// The area that is enough for every message to a filter unit: `fragments` in an event, each with at most `size`
    /// bytes.
    pub fn for_events(plan: &UnitsPlan, fragments: u64, size: u64) -> Self {
        let largest = area::largest_room(fragments, size);
        let held = largest.saturating_mul(plan.events.into());
        Self::Area(area::size_for(held.min(largest.saturating_add(keeper::MESSAGE_BYTES as u64))))
    }
}

/// Most events in quarantine that a report names.
const MOST_TOLD: usize = 16;

/// Wakes the node.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// An event that a filter is to decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<B> {
    /// The event, or the fragments of its first phase.
    pub built: Built<B>,
    /// The event is in its first phase: its other fragments are asked for if it is accepted.
    pub is_phase: bool,
}

/// The decision of filter units about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The event ends and is not stored.
    Rejected,
    /// The event is stored in this stream.
    Accepted(StreamId),
    /// No filter unit could decide: the event is kept in quarantine.
    Quarantined,
}

/// An event with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<B> {
    /// The event as it was given to the filter.
    pub question: Question<B>,
    /// The decision.
    pub verdict: Verdict,
}

/// The reason why an event is in quarantine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The process ended while it had the event.
    #[error("its filter crashed: {0}")]
    Crashed(String),
    /// The process did nothing for the time limit.
    #[error("its filter did nothing for {0}")]
    Hung(Span),
    /// The process closed its input or its output.
    #[error("its filter closed its input or output")]
    Closed,
    /// The process answered what means nothing.
    #[error("its filter answered nonsense: {0}")]
    Nonsense(String),
    /// No filter unit is left: all of them ended again and again.
    #[error("no filter unit works any more")]
    GivenUp,
}

impl Reason {
    /// The name in records.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Crashed(_) => "crashed",
            Self::Hung(_) => "hung",
            Self::Closed => "closed",
            Self::Nonsense(_) => "nonsense",
            Self::GivenUp => "given_up",
        }
    }
}

/// Events that were given to filter units. One that is asked about again counts each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Number of events.
    pub events: u64,
    /// Bytes of their fragments.
    pub bytes: u64,
}

impl Given {
    fn of(questions: &VecDeque<Question<Bytes>>) -> Self {
        let fragments = questions.iter().flat_map(|question| question.built.wanted()).filter_map(|(_, found)| found);
        let bytes = fragments.map(|fragment| fragment.payload.len() as u64).sum();
        Self { events: questions.len() as u64, bytes }
    }
}

impl AddAssign for Given {
    fn add_assign(&mut self, more: Self) {
        self.events += more.events;
        self.bytes += more.bytes;
    }
}

/// The counts of filter units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitsReport {
    /// Events in quarantine by reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// The first events in quarantine.
    pub told: Vec<(EventId, Reason)>,
    /// Number of times a process was started again.
    pub restarts: u64,
    /// The last failures of the filter units that were given up.
    pub given_up: Vec<String>,
    /// Events that processes read in memory.
    pub in_memory: Given,
    /// Events that processes read from their pipes.
    pub by_pipe: Given,
    /// The reason why the system gave no memory to filter units, which read from their pipes then.
    pub no_memory: Option<String>,
}

/// The filter units of one builder.
pub struct Units {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Events that were asked about and have no answer yet.
    away: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Question<Bytes>>,
    answers: Vec<Answer<Bytes>>,
    /// No more events come.
    finishing: bool,
    /// Nobody waits for anything any more.
    dropped: bool,
    /// Filter units that were not given up.
    working: usize,
    report: UnitsReport,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    waker: Waker,
}

impl Units {
    /// Starts the filter units of a builder. `hello` is the first message to each, except for the index of the unit;
    /// `waker` wakes the node when there are answers. Without `memory`, or if the system does not give it, events go
    /// through pipes.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(plan: &UnitsPlan, hello: &Hello, memory: Memory, waker: Waker) -> io::Result<Self> {
        let state = State { working: plan.units.into(), ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), waker });
        let mut units = Self { shared: shared.clone(), threads: Vec::new(), away: 0 };
        for unit in 0..plan.units {
            let area = shared.area(memory);
            let keeper = Keeper::new(plan.clone(), Hello { unit, ..hello.clone() }, area, shared.clone());
            units.threads.push(thread::Builder::new().spawn(move || keeper.run())?);
        }
        Ok(units)
    }

    /// Asks about an event. It comes back from [`take`](Self::take).
    pub fn ask(&mut self, question: Question<Bytes>) {
        self.away += 1;
        let mut state = self.shared.state();
        if state.working == 0 {
            state.quarantine(question, &Reason::GivenUp);
        } else {
            state.queue.push_back(question);
            self.shared.changed.notify_one();
        }
    }

    /// Moves all events with verdicts into `sink`.
    pub fn take(&mut self, sink: &mut Vec<Answer<Bytes>>) {
        if self.away > 0 {
            let before = sink.len();
            sink.append(&mut self.shared.state().answers);
            self.away -= sink.len() - before;
        }
    }

    /// True while filter units have events.
    pub const fn is_busy(&self) -> bool {
        self.away > 0
    }

    /// Ends the processes. Returns true when all have ended; until then it must be called again.
    pub fn finish(&mut self) -> bool {
        self.shared.change(|state| state.finishing = true);
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.is_empty()
    }

    /// The counts so far.
    pub fn report(&self) -> UnitsReport {
        self.shared.state().report.clone()
    }
}

impl Drop for Units {
    /// Lets all processes end at once, and waits for none.
    fn drop(&mut self) {
        self.shared.change(|state| state.dropped = true);
    }
}

impl State {
    fn quarantine(&mut self, question: Question<Bytes>, reason: &Reason) {
        *self.report.reasons.entry(reason.name()).or_default() += 1;
        if self.report.told.len() < MOST_TOLD {
            self.report.told.push((question.built.event, reason.clone()));
        }
        self.answers.push(Answer { question, verdict: Verdict::Quarantined });
    }
}

impl Shared {
    /// Memory for a filter unit; none if it is to have none, or the report says why there is none.
    fn area(&self, memory: Memory) -> Option<Area> {
        let Memory::Area(bytes) = memory else { return None };
        let failed = |error: io::Error| self.state().report.no_memory = Some(format!("{bytes} B: {error}"));
        Area::create(bytes).map_err(failed).ok()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
