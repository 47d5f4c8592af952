//! The exchange between a node and its writer: events to be stored one way, stored events the other way.
//!
//! The slots of the builder bound both directions: the slot of an event comes back when the event is stored.

use super::{
    event_file::RoutedEvent,
    write_lease::{LeaseState, WriteLease, now},
};
use crate::error::NodeError;
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

/// The next task of the writer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    Write {
        /// The writer was idle before.
        was_idle: bool,
    },
    /// Remove events that are not reported as stored, and close the files.
    GoBack,
    /// Close the files.
    Close,
    /// Leave the files as they are.
    Drop,
}

/// The end that the node has asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    None,
    /// Write the remaining events.
    Finish,
    /// The node has crashed on purpose.
    Drop,
}

struct ExchangeState {
    queue: Vec<RoutedEvent>,
    stored: Vec<Built<Bytes>>,
    end: End,
    /// The writer sleeps.
    sleeps: bool,
    /// The result of the writer, once it has ended.
    outcome: Option<Result<(), NodeError>>,
    /// Events and bytes of each stream.
    summary: Vec<WriteSummary>,
}

pub(super) struct Exchange {
    pub(super) lease: WriteLease,
    state: Mutex<ExchangeState>,
    changed: Condvar,
    /// The node has news to take.
    news: AtomicBool,
}

impl Exchange {
    pub(super) fn new(lease: Option<Duration>, summary: Vec<WriteSummary>) -> Self {
        let state =
            ExchangeState { queue: vec![], stored: vec![], end: End::None, sleeps: false, outcome: None, summary };
        Self {
            lease: WriteLease::new(lease),
            state: Mutex::new(state),
            changed: Condvar::new(),
            news: AtomicBool::new(false),
        }
    }

    // The node's side.

    /// Hands events over, in this order.
    pub(super) fn hand_over(&self, events: &mut Vec<RoutedEvent>) {
        self.change(|state| match state.outcome.is_none() && self.lease.state(now()) != LeaseState::Fenced {
            true => state.queue.append(events),
            false => events.clear(),
        });
    }

    /// Moves stored events into `sink`, none while the lease is held.
    ///
    /// # Errors
    /// The error of the writer, once. What was stored before is returned by an earlier call, so that the node can report
    /// it before it fails.
    pub(super) fn take_stored(&self, sink: &mut Vec<Built<Bytes>>) -> Result<(), NodeError> {
        if !self.news.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.state();
        if self.lease.state(now()) != LeaseState::Open {
            return Ok(());
        }
        if !state.stored.is_empty() {
            let has_ended = state.outcome.is_some();
            self.news.store(has_ended, Ordering::Relaxed);
            sink.append(&mut state.stored);
            return Ok(());
        }
        self.news.store(false, Ordering::Relaxed);
        match &mut state.outcome {
            Some(outcome) => std::mem::replace(outcome, Ok(())),
            None => Ok(()),
        }
    }

    /// Lets the writer end after the last event. Held events are never written.
    pub(super) fn finish(&self) {
        self.change(|state| state.end = End::Finish);
    }

    /// Lets the writer end at once.
    pub(super) fn drop_all(&self) {
        self.change(|state| state.end = End::Drop);
    }

    #[cfg(test)]
    pub(super) fn hold(&self) {
        self.change(|_| self.lease.hold());
    }

    pub(super) fn release(&self) {
        self.change(|_| self.lease.release());
    }

    pub(super) fn fence(&self) {
        self.change(|state| {
            self.lease.fence();
            state.queue.clear();
        });
    }

    /// The summary of the files.
    pub(super) fn summary(&self) -> Vec<WriteSummary> {
        self.state().summary.clone()
    }

    /// The result of a writer that has ended. Later calls return `Ok`.
    pub(super) fn outcome(&self) -> Result<(), NodeError> {
        self.state().outcome.replace(Ok(())).unwrap_or(Ok(()))
    }

    // The writer's side.

    /// Waits for a task, and moves all events that were handed over into `waiting`.
    pub(super) fn next(&self, waiting: &mut VecDeque<RoutedEvent>) -> Task {
        let (mut state, mut was_idle) = (self.state(), false);
        loop {
            waiting.extend(state.queue.drain(..));
            match (state.end, self.lease.state(now())) {
                (End::Drop, _) => return Task::Drop,
                (End::Finish, LeaseState::Held) | (_, LeaseState::Fenced) => return self.end_behind_the_fence(&state),
                (_, LeaseState::Open) if !waiting.is_empty() => return Task::Write { was_idle },
                (End::Finish, LeaseState::Open) => return Task::Close,
                (End::None, LeaseState::Open | LeaseState::Held) => {}
            }
            was_idle = true;
            state = self.sleep(state, None);
        }
    }

    /// Gives back written events as soon as the lease is open. Returns true if the node has taken all earlier ones.
    ///
    /// # Errors
    /// The next task if the lease stays held. The batch is then never reported as stored.
    pub(super) fn confirm(&self, batch: &mut Vec<Built<Bytes>>, summary: Vec<WriteSummary>) -> Result<bool, Task> {
        let mut state = self.state();
        state.summary = summary;
        loop {
            match (state.end, self.lease.state(now())) {
                (End::Drop, _) => return Err(Task::Drop),
                (End::Finish, LeaseState::Held) | (_, LeaseState::Fenced) => {
                    return Err(self.end_behind_the_fence(&state));
                }
                (_, LeaseState::Open) => break,
                (End::None, LeaseState::Held) => {}
            }
            state = self.sleep(state, None);
        }
        let all_taken = state.stored.is_empty();
        state.stored.append(batch);
        self.news.store(true, Ordering::Release);
        Ok(all_taken)
    }

    /// Sleeps until this time, or until the end comes.
    pub(super) fn pause(&self, until: Instant) {
        let mut state = self.state();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.end == End::Drop || self.lease.state(now()) == LeaseState::Fenced {
                return;
            }
            state = self.sleep(state, Some(left));
        }
    }

    /// Notes the result of the writer.
    pub(super) fn end(&self, outcome: Result<(), NodeError>, summary: Option<Vec<WriteSummary>>) {
        let mut state = self.state();
        if let Some(summary) = summary {
            state.summary = summary;
        }
        state.outcome = Some(outcome);
        state.queue.clear();
        self.news.store(true, Ordering::Release);
    }

    fn end_behind_the_fence(&self, state: &ExchangeState) -> Task {
        self.lease.fence();
        if state.stored.is_empty() { Task::Close } else { Task::GoBack }
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, ExchangeState>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, ExchangeState> {
        state.sleeps = true;
        match most {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(most) => self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    fn change(&self, change: impl FnOnce(&mut ExchangeState)) {
        let mut state = self.state();
        change(&mut state);
        // A wake-up is a system call, even if the writer does not sleep.
        if std::mem::take(&mut state.sleeps) {
            drop(state);
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
