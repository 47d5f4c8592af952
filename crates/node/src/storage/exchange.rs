//! What a node and its writer hand each other: events to be stored, and events that are.
//!
//! Both sides are bounded by the slots of the builder: the slot of an event comes back when it is stored.

use super::gate::{Gate, Way, now};
use crate::control::NodeError;
use bytes::Bytes;
use evb_events::WriteSummary;
use evb_protocol::Built;
use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// What the writer does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    Write {
        /// There was nothing to write before.
        rested: bool,
    },
    /// Take out what nobody was told of, and close.
    GoBack,
    /// Close the files.
    Close,
    /// Leave all as it is.
    Drop,
}

/// What the node has said of the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    None,
    /// Write what there is.
    Finish,
    /// The node has crashed on purpose.
    Drop,
}

struct State {
    queue: Vec<Built<Bytes>>,
    stored: Vec<Built<Bytes>>,
    end: End,
    /// The writer sleeps.
    sleeps: bool,
    /// The result of the writer, once it has ended.
    outcome: Option<Result<(), NodeError>>,
    summary: WriteSummary,
}

pub(super) struct Exchange {
    pub(super) gate: Gate,
    state: Mutex<State>,
    changed: Condvar,
    /// The node has something to take.
    news: AtomicBool,
}

impl Exchange {
    pub(super) fn new(lease: Option<Duration>, summary: WriteSummary) -> Self {
        let state = State { queue: vec![], stored: vec![], end: End::None, sleeps: false, outcome: None, summary };
        Self { gate: Gate::new(lease), state: Mutex::new(state), changed: Condvar::new(), news: AtomicBool::new(false) }
    }

    // The node's side.

    /// Hands events over, in this order.
    pub(super) fn hand_over(&self, events: &mut Vec<Built<Bytes>>) {
        self.change(|state| match state.outcome.is_none() && self.gate.way(now()) != Way::Fenced {
            true => state.queue.append(events),
            false => events.clear(),
        });
    }

    /// Moves what is stored into `sink`; nothing while the gate is shut.
    ///
    /// # Errors
    /// What went wrong in the writer, once.
    pub(super) fn take_stored(&self, sink: &mut Vec<Built<Bytes>>) -> Result<(), NodeError> {
        if !self.news.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.state();
        if self.gate.way(now()) != Way::Open {
            return Ok(());
        }
        self.news.store(false, Ordering::Relaxed);
        sink.append(&mut state.stored);
        match &mut state.outcome {
            Some(outcome) => std::mem::replace(outcome, Ok(())),
            None => Ok(()),
        }
    }

    /// Lets the writer end when all is written; what is held is not, and never will be.
    pub(super) fn finish(&self) {
        self.change(|state| state.end = End::Finish);
    }

    /// Lets the writer end as it stands.
    pub(super) fn drop_all(&self) {
        self.change(|state| state.end = End::Drop);
    }

    #[cfg(test)]
    pub(super) fn hold(&self) {
        self.change(|_| self.gate.hold());
    }

    pub(super) fn release(&self) {
        self.change(|_| self.gate.release());
    }

    pub(super) fn fence(&self) {
        self.change(|state| {
            self.gate.fence();
            state.queue.clear();
        });
    }

    /// What is in the files.
    pub(super) fn summary(&self) -> WriteSummary {
        self.state().summary
    }

    /// The result of a writer that has ended; later ones are good.
    pub(super) fn outcome(&self) -> Result<(), NodeError> {
        self.state().outcome.replace(Ok(())).unwrap_or(Ok(()))
    }

    // The writer's side.

    /// Waits for something to do; moves all that was handed over into `waiting`.
    pub(super) fn next(&self, waiting: &mut VecDeque<Built<Bytes>>) -> Task {
        let (mut state, mut rested) = (self.state(), false);
        loop {
            waiting.extend(state.queue.drain(..));
            match (state.end, self.gate.way(now())) {
                (End::Drop, _) => return Task::Drop,
                (End::Finish, Way::Held) | (_, Way::Fenced) => return self.end_behind_the_fence(&state),
                (_, Way::Open) if !waiting.is_empty() => return Task::Write { rested },
                (End::Finish, Way::Open) => return Task::Close,
                (End::None, Way::Open | Way::Held) => {}
            }
            rested = true;
            state = self.sleep(state, None);
        }
    }

    /// Gives back what was written as soon as the gate is open; whether all that was given back before has been taken.
    ///
    /// # Errors
    /// What is to be done when the gate will not open: then nobody hears of the batch.
    pub(super) fn confirm(&self, batch: &mut Vec<Built<Bytes>>, summary: WriteSummary) -> Result<bool, Task> {
        let mut state = self.state();
        state.summary = summary;
        loop {
            match (state.end, self.gate.way(now())) {
                (End::Drop, _) => return Err(Task::Drop),
                (End::Finish, Way::Held) | (_, Way::Fenced) => {
                    return Err(self.end_behind_the_fence(&state));
                }
                (_, Way::Open) => break,
                (End::None, Way::Held) => {}
            }
            state = self.sleep(state, None);
        }
        let all_taken = state.stored.is_empty();
        state.stored.append(batch);
        self.news.store(true, Ordering::Release);
        Ok(all_taken)
    }

    /// Sleeps, unless the end comes.
    pub(super) fn pause(&self, until: Instant) {
        let mut state = self.state();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.end == End::Drop || self.gate.way(now()) == Way::Fenced {
                return;
            }
            state = self.sleep(state, Some(left));
        }
    }

    /// Notes how the writer has ended.
    pub(super) fn end(&self, outcome: Result<(), NodeError>, summary: Option<WriteSummary>) {
        let mut state = self.state();
        state.summary = summary.unwrap_or(state.summary);
        state.outcome = Some(outcome);
        state.queue.clear();
        self.news.store(true, Ordering::Release);
    }

    fn end_behind_the_fence(&self, state: &State) -> Task {
        self.gate.fence();
        if state.stored.is_empty() { Task::Close } else { Task::GoBack }
    }

    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>, most: Option<Duration>) -> MutexGuard<'a, State> {
        state.sleeps = true;
        match most {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(most) => self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        // To wake somebody is a system call, even when nobody sleeps.
        if std::mem::take(&mut state.sleeps) {
            drop(state);
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
