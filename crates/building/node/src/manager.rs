//! The event manager as a node: the unit and the clock of the trigger.

use crate::control::{Notice, Order};
use crate::error::NodeError;
use crate::node::NodeRole;
use crate::run_info::RunStart;
use bytes::Bytes;
use evb_core::{NodeId, Span, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{ManagerEvent, Message};
use evb_unit::{Arrivals, Report};
use std::collections::VecDeque;

pub(crate) struct ManagerNode {
    unit: evb_unit::EventManager<Bytes>,
    /// The times of triggers, relative to the start.
    trigger: Option<Arrivals>,
    started: Time,
    notices: VecDeque<Notice>,
    /// Run control waits for the end of all events.
    settling: bool,
    /// Triggers are turned away between two runs, and are to be counted.
    between: bool,
    deadline: Option<Time>,
}

impl ManagerNode {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            unit: evb_unit::EventManager::new(plan),
            trigger: Arrivals::of_triggers(plan),
            started: Time::ZERO,
            notices: VecDeque::new(),
            settling: false,
            between: false,
            deadline: None,
        }
    }

    /// Takes note of the triggers that have come while none was taken. Between two runs they are counted.
    fn skip_triggers(&mut self, now: Time) {
        let passed = self.trigger.as_mut().map_or(0, |trigger| trigger.pass(Time(now.since(self.started).0)));
        if std::mem::take(&mut self.between) {
            self.unit.turn_away(now, passed);
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.unit.poll_event() {
            match event {
                ManagerEvent::Completed { .. } | ManagerEvent::Reassigned(_) => {}
                ManagerEvent::Drained => self.notices.push_back(Notice::Drained),
                ManagerEvent::NoBuilders => self.notices.push_back(Notice::NoBuilders),
            }
        }
        if self.settling && self.unit.is_settled() {
            self.settling = false;
            self.notices.push_back(Notice::Settled);
        }
    }
}

impl NodeRole for ManagerNode {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        self.unit.pass(now);
        self.unit.handle_message(now, from, message);
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.unit.lose(now, peer);
    }

    fn order(&mut self, now: Time, order: Order) {
        match order {
            Order::Start => {
                self.started = now;
                self.trigger.iter_mut().for_each(|trigger| _ = trigger.advance());
                self.unit.start(now);
            }
            Order::Pause => self.unit.pause(now),
            Order::Resume => {
                // Triggers of a pause have not come.
                self.skip_triggers(now);
                self.unit.resume(now);
            }
            Order::Settle => {
                (self.settling, self.between) = (true, true);
                self.unit.pause(now);
            }
            Order::Stop => {
                if self.between {
                    self.skip_triggers(now);
                }
                self.settling = false;
                self.unit.stop(now);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Time, _calm: bool) -> Result<bool, NodeError> {
        self.unit.pass(now);
        let trigger = self.trigger.as_mut().filter(|_| self.unit.is_running());
        if let Some(trigger) = trigger {
            let since_start = |time: Time| Time(time.since(self.started).0);
            trigger.pass_each(since_start(now), |at, count| self.unit.trigger(now, self.started + Span(at.0), count));
        }
        // After the triggers, which may have filled the block that would start now.
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.unit.handle_timeout(now);
        }
        // An accepted trigger shows in what is sent, and a rejected one need not keep the worker awake.
        Ok(false)
    }

    fn transmit(&mut self, _now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>) -> bool) {
        while let Some(transmit) = self.unit.poll_transmit() {
            send(transmit);
        }
        self.handle_events();
        self.deadline = self.unit.deadline();
    }

    fn deadline(&self) -> Option<Time> {
        let trigger = self.trigger.as_ref().filter(|_| self.unit.is_running());
        let next = trigger.map(|trigger| self.started + Span(trigger.at().0));
        self.deadline.into_iter().chain(next).min()
    }

    fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn next_run(&mut self, now: Time, _run: &RunStart) -> Result<(), NodeError> {
        self.unit.next_run(now);
        Ok(())
    }

    fn report(&self, now: Time) -> Report {
        Report::Manager(self.unit.report(now))
    }
}
