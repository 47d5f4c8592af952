//! The thread that keeps one filter unit: it starts the process, gives it events, and starts it again. One that has joined
//! from another machine is kept until its connection ends.

use super::{
    Answer, Given, Question, Reason, Shared, State, Verdict,
    process::{Process, Way},
};
use crate::{
    Hello, StreamId, UnitsPlan,
    area::{Area, room_of},
    wire::Decided,
};
use bytes::Bytes;
use evb_core::EventId;
use std::{
    collections::VecDeque,
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Bytes of events after which a message holds no further event.
pub(super) const MESSAGE_BYTES: usize = 4 << 20;
/// Number of starts in turn after which a process that never gave a verdict is given up.
const MOST_FAILURES: u32 = 5;
/// Wait before a process is started again; it doubles with each failure in turn.
const FIRST_WAIT: Duration = Duration::from_millis(10);
/// Time between two checks of an idle remote filter unit.
const LOOK_UP: Duration = Duration::from_millis(200);

/// The keeper of one filter unit.
pub(super) struct Keeper {
    plan: UnitsPlan,
    hello: Hello,
    shared: Arc<Shared>,
    process: Option<Process>,
    /// It is remote, and cannot be started again.
    joined: bool,
    /// The memory in which the process reads its events; `None` if it reads them from its pipe. It stays when a process ends.
    area: Option<Area>,
    /// Starts since the last verdict.
    failures: u32,
    /// Events that the process has.
    held: VecDeque<Question<Bytes>>,
    /// Events that a process had when it failed. They are asked about again, one by one: this finds the one at fault.
    again: VecDeque<Question<Bytes>>,
}

impl Keeper {
    pub(super) fn new(plan: UnitsPlan, hello: Hello, area: Option<Area>, shared: Arc<Shared>) -> Self {
        let (held, again) = (VecDeque::new(), VecDeque::new());
        Self { plan, hello, shared, process: None, joined: false, area, failures: 0, held, again }
    }

    /// The keeper of a remote filter unit that is ready.
    pub(super) fn joined(plan: UnitsPlan, hello: Hello, process: Process, shared: Arc<Shared>) -> Self {
        Self { process: Some(process), joined: true, ..Self::new(plan, hello, None, shared) }
    }

    /// Works until the node ends it, or until the process is given up.
    pub(super) fn run(mut self) {
        while self.has_process() && self.take_events() {
            if let Err(reason) = self.decide() {
                self.fail(&reason);
            }
        }
        if let Some(process) = self.process.take() {
            process.end();
        }
    }

    /// Starts the process if it is not there; returns false if that is not to be tried any more.
    fn has_process(&mut self) -> bool {
        if self.joined {
            return self.process.is_some();
        }
        let ended = self.process.as_mut().is_some_and(|process| process.ended().is_some());
        if ended {
            self.process = None;
            self.failures += 1;
        }
        while self.process.is_none() {
            if self.failures >= MOST_FAILURES {
                self.give_up("it ended again and again before its first verdict");
                return false;
            }
            if self.failures > 0 && !self.wait() {
                return false;
            }
            let shared = self.shared.clone();
            match Process::start(&self.plan, &self.hello, self.area.as_mut(), &|| shared.state().dropped) {
                Ok(process) => self.process = Some(process),
                Err(_) if self.shared.state().dropped => return false,
                Err(reason) if self.failures + 1 >= MOST_FAILURES => {
                    self.give_up(&reason);
                    return false;
                }
                Err(_) => self.failures += 1,
            }
        }
        true
    }

    /// Waits before the next start; returns false if the end comes first.
    fn wait(&self) -> bool {
        let until = Instant::now() + FIRST_WAIT * (1 << self.failures.min(7));
        let mut state = self.shared.state();
        state.report.restarts += 1;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.dropped || (state.finishing && state.queue.is_empty() && self.again.is_empty()) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for events, and takes its part of them; returns false when none will come.
    fn take_events(&mut self) -> bool {
        let mut state = self.shared.state();
        if let Some(question) = self.again.pop_front() {
            self.held.push_back(question);
            return !state.dropped;
        }
        while state.queue.is_empty() && state.again.is_empty() && !state.dropped && !state.finishing {
            if !self.joined {
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let woken = self.shared.changed.wait_timeout(state, LOOK_UP).unwrap_or_else(PoisonError::into_inner);
            drop(woken);
            if let Some(reason) = self.process.as_mut().and_then(Process::ended) {
                self.fail(&reason);
                return false;
            }
            state = self.shared.state();
        }
        if let Some(question) = state.again.pop_front() {
            self.held.push_back(question);
            return !state.dropped;
        }
        let part = state.queue.len().div_ceil(state.working.max(1)).min(self.plan.events as usize);
        let mut bytes = 0;
        while self.held.len() < part.max(1) && bytes < MESSAGE_BYTES {
            let Some(question) = state.queue.pop_front() else { break };
            bytes += room_of(&question.built);
            self.held.push_back(question);
        }
        !state.dropped && !self.held.is_empty()
    }

    /// Has the process decide about all events that it is to have.
    fn decide(&mut self) -> Result<(), Reason> {
        let Some(process) = &mut self.process else { return Err(Reason::Closed) };
        let shared = self.shared.clone();
        let is_dropped = || shared.state().dropped;
        let events = self.held.iter().map(|question| &question.built);
        let way = process.send_events(events, self.area.as_mut(), &is_dropped)?;
        self.count(way);
        while !self.held.is_empty() {
            let Some(process) = &mut self.process else { return Err(Reason::Closed) };
            let verdicts = process.receive_verdicts(&is_dropped)?;
            if verdicts.is_empty() {
                return Err(Reason::Nonsense("a message without verdicts".into()));
            }
            self.take_verdicts(verdicts)?;
        }
        Ok(())
    }

    /// Counts the events that the process was given.
    fn count(&self, way: Way) {
        let given = Given::of(&self.held);
        let report = &mut self.shared.state().report;
        *match way {
            Way::Memory => &mut report.in_memory,
            Way::Pipe => &mut report.by_pipe,
            Way::Network => &mut report.by_network,
        } += given;
    }

    fn take_verdicts(&mut self, verdicts: Vec<Decided>) -> Result<(), Reason> {
        let mut answers = Vec::new();
        let found = verdicts.into_iter().try_for_each(|verdict| {
            answers.push(self.answer(verdict)?);
            Ok(())
        });
        if !answers.is_empty() {
            self.failures = 0;
            self.tell(|state| {
                if !state.losses.is_empty() {
                    answers.iter().for_each(|answer| _ = state.losses.remove(&answer.question.built.event));
                }
                state.answers.append(&mut answers);
            });
        }
        found
    }

    fn answer(&mut self, (event, stream): (EventId, Option<u16>)) -> Result<Answer<Bytes>, Reason> {
        if let Some(stream) = stream.filter(|&stream| usize::from(stream) >= self.hello.streams.len()) {
            return Err(Reason::Nonsense(format!("stream {stream} does not exist")));
        }
        let place = self.held.iter().position(|question| question.built.event == event);
        let question = place.and_then(|place| self.held.remove(place));
        let Some(question) = question else {
            return Err(Reason::Nonsense(format!("a verdict about event {event}, which it does not have")));
        };
        let verdict = stream.map_or(Verdict::Rejected, |stream| Verdict::Accepted(StreamId(stream)));
        Ok(Answer { question, verdict })
    }

    /// Ends the process. The event that it has goes into quarantine; several are asked about again. A lost connection is
    /// not the fault of its events: others are asked about them.
    fn fail(&mut self, reason: &Reason) {
        tracing::warn!(builder = self.hello.builder, unit = self.hello.unit, %reason, "a filter unit failed");
        self.process = None;
        self.failures += 1;
        let mut held = std::mem::take(&mut self.held);
        if self.joined {
            self.tell(|state| state.lose(held, reason));
            self.shared.changed.notify_all();
        } else if held.len() > 1 {
            self.again.append(&mut held);
        } else if let Some(question) = held.pop_front() {
            self.tell(|state| state.quarantine(question, reason));
        }
    }

    /// Gives up this filter unit. Its events go into quarantine, and if it was the last one, all events.
    fn give_up(&mut self, why: &str) {
        let reason = format!("filter unit {} of bu{}: {why}", self.hello.unit, self.hello.builder);
        let mut left = std::mem::take(&mut self.again);
        self.tell(|state| {
            state.report.given_up.push(reason);
            state.leave();
            if state.listens {
                state.again.append(&mut left);
                return;
            }
            if state.working == 0 {
                left.append(&mut state.queue);
            }
            left.into_iter().for_each(|question| state.quarantine(question, &Reason::GivenUp));
        });
    }

    /// Changes the shared state, and wakes the node.
    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state: MutexGuard<'_, State> = self.shared.state();
        change(&mut state);
        drop(state);
        (self.shared.waker)();
    }
}
