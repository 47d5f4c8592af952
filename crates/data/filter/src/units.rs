//! The filter units of one builder: processes that decide about events, each kept by its own thread. They are children
//! of the builder, or have joined from another machine.
//!
//! A thread gives its process some events, waits for the verdicts, and gives the next ones. A process that crashes, hangs
//! or answers nonsense is started again, and has these events again, one by one: only the one at fault goes into
//! quarantine. No call of the node waits for a process.
//!
//! A process holds few events, so that few are asked about again after a crash. Its pipe is idle between two batches,
//! and several processes make up for that. Events are copied into its memory even where their fragments are shared: a
//! filter sees the events of its builder and no more. Libraries run in processes, too, because foreign code can spoil
//! memory or hang.

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
    time::{Duration, Instant},
};

mod keeper;
mod link;
mod process;
mod remote_listener;
mod spawn;
#[cfg(test)]
mod tests;

pub(crate) use link::{Pipes, is_not_yet};
pub use remote_listener::RemoteListener;
#[cfg(test)]
pub(crate) use spawn::spawn;

/// The memory in which filter units read their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Each has an area of this size in bytes. It takes the memory that its events have needed so far.
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
/// Number of filter units that may be lost while they have one event alone, before it is taken to be at fault.
const MOST_LOSSES: u32 = 3;
/// Time for which events wait for a filter unit before that is said.
const TELL_AFTER: Duration = Duration::from_millis(500);
/// Most notes for people that wait.
const MOST_NOTES: usize = 16;

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
    /// The connections of several remote filter units were lost while they had this event alone.
    #[error("the connection to its filter unit was lost: {0}")]
    Lost(String),
    /// The run ended while no filter unit was there.
    #[error("no filter unit was there at the end of the run")]
    NoUnit,
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
            Self::Lost(_) => "lost",
            Self::NoUnit => "nobody",
        }
    }

    /// The loss of a filter unit that does not even say that it is there.
    fn silent() -> Self {
        Self::Lost("it was silent for too long".into())
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
    pub first_failures: Vec<(EventId, Reason)>,
    /// Number of times a process was started again.
    pub restarts: u64,
    /// The last failures of the filter units that were given up.
    pub given_up: Vec<String>,
    /// Events that processes read in memory.
    pub in_memory: Given,
    /// Events that processes read from their pipes.
    pub by_pipe: Given,
    /// Events that went to remote filter units.
    pub by_network: Given,
    /// Number of times a remote filter unit joined.
    pub joined: u64,
    /// Number of times one of these ended before the run did: its connection was lost, or it failed.
    pub lost: u64,
    /// The reason for the first of these ends.
    pub first_lost: Option<String>,
    /// The reason why the system gave no memory to filter units, which read from their pipes then.
    pub no_memory: Option<String>,
}

/// The filter units of one builder.
pub struct Units {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Events that were asked about and have no answer yet.
    away: usize,
    /// The listener for remote filter units.
    listener: Option<Arc<RemoteListener>>,
    /// Index of the builder.
    builder: u16,
    /// The moment at which the run began to end.
    ending: Option<Instant>,
    /// Longest wait for a filter unit at the end of a run.
    patience: Duration,
    /// Since when events wait while no filter unit is there, and whether that was said.
    waiting: Option<(Instant, bool)>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Question<Bytes>>,
    answers: Vec<Answer<Bytes>>,
    /// No more events come.
    finishing: bool,
    /// The owner has closed the queue.
    dropped: bool,
    /// Filter units that were not given up, and the connected remote ones.
    working: usize,
    /// Remote filter units may join.
    listens: bool,
    /// Events to ask about one by one: a remote filter unit had them when it ended.
    again: VecDeque<Question<Bytes>>,
    /// Number of losses of a filter unit that had this event alone, for events without a verdict.
    losses: BTreeMap<EventId, u32>,
    /// The moment at which the last filter unit left.
    without_unit_since: Option<Instant>,
    /// Connections of remote filter units.
    connections: usize,
    /// Sentences for people.
    notes: VecDeque<String>,
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
    /// through pipes. Remote filter units join at `listener`.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(
        plan: &UnitsPlan,
        hello: &Hello,
        memory: Memory,
        listener: Option<RemoteListener>,
        waker: Waker,
    ) -> io::Result<Self> {
        let listener = listener.map(Arc::new);
        let state = State { working: plan.units.into(), listens: listener.is_some(), ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), waker });
        let mut units = Self {
            shared: shared.clone(),
            threads: Vec::new(),
            away: 0,
            listener: listener.clone(),
            builder: hello.builder,
            ending: None,
            patience: plan.patience.as_duration(),
            waiting: None,
        };
        if let Some(listener) = listener {
            shared.state().note(format!("bu{} waits for filter units at {}", hello.builder, listener.address()));
            units.threads.push(listener.open(plan.clone(), hello.clone(), shared.clone())?);
        }
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
        if state.working == 0 && !state.listens {
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
            if self.listener.is_some() {
                self.look_for_units();
            }
        }
    }

    /// The next sentence for people: where filter units can join, and that events wait for them.
    pub fn note(&mut self) -> Option<String> {
        self.listener.as_ref()?;
        self.shared.state().notes.pop_front()
    }

    /// Takes note that the run ends: when no filter unit comes for a while, the events that wait go into quarantine.
    pub fn expect_end(&mut self) {
        self.ending.get_or_insert_with(Instant::now);
    }

    /// Says once that events wait for remote filter units, and gives them up at the end of a run.
    fn look_for_units(&mut self) {
        let mut state = self.shared.state();
        if state.working > 0 || self.away == 0 {
            self.waiting = None;
            return;
        }
        let (since, has_told) = self.waiting.get_or_insert_with(|| (Instant::now(), false));
        if !*has_told && since.elapsed() >= TELL_AFTER {
            *has_told = true;
            let builder = self.builder;
            tracing::warn!(builder, "events wait, and no filter unit is there");
            state.note(format!("bu{builder} waits with its events: no filter unit is there"));
        }
        let since = self.ending.map(|ending| state.without_unit_since.map_or(ending, |since| since.max(ending)));
        if since.is_some_and(|since| since.elapsed() >= self.patience) {
            let again = std::mem::take(&mut state.again);
            let queue = std::mem::take(&mut state.queue);
            again.into_iter().chain(queue).for_each(|question| state.quarantine(question, &Reason::NoUnit));
        }
    }

    /// True while filter units have events.
    pub const fn is_busy(&self) -> bool {
        self.away > 0
    }

    /// Ends the processes. Returns true when all have ended; until then it must be called again.
    pub fn finish(&mut self) -> bool {
        self.expect_end();
        self.shared.change(|state| state.finishing = true);
        if let Some(listener) = self.listener.clone() {
            self.look_for_units();
            let state = self.shared.state();
            // Remote filter units may still come while events wait for them.
            if self.away > state.answers.len() {
                return false;
            }
            listener.close();
            if state.connections > 0 {
                return false;
            }
        }
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
        if let Some(listener) = &self.listener {
            listener.close();
        }
    }
}

impl State {
    /// Gives back the events of a remote filter unit that has ended. An event that it had alone goes into quarantine if
    /// it made the program fail, or if too many connections were lost with it.
    fn lose(&mut self, mut held: VecDeque<Question<Bytes>>, reason: &Reason) {
        self.report.lost += 1;
        self.report.first_lost.get_or_insert_with(|| reason.to_string());
        if let ([question], Reason::Lost(_)) = (held.make_contiguous(), reason) {
            let losses = self.losses.entry(question.built.event).or_default();
            *losses += 1;
            if *losses < MOST_LOSSES {
                self.again.append(&mut held);
            }
        } else if held.len() > 1 {
            self.again.append(&mut held);
        }
        held.into_iter().for_each(|question| self.quarantine(question, reason));
    }

    /// A filter unit less.
    fn leave(&mut self) {
        self.working -= 1;
        if self.working == 0 {
            self.without_unit_since = Some(Instant::now());
        }
    }

    fn note(&mut self, text: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push_back(text);
        }
    }

    fn quarantine(&mut self, question: Question<Bytes>, reason: &Reason) {
        *self.report.reasons.entry(reason.name()).or_default() += 1;
        if self.report.first_failures.len() < MOST_TOLD {
            self.report.first_failures.push((question.built.event, reason.clone()));
        }
        self.answers.push(Answer { question, verdict: Verdict::Quarantined });
    }
}

impl Shared {
    /// Memory for a filter unit; `None` if it is to have none, or the report says why there is none.
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
