//! Run control, its operator, and what they hear.

use super::{CONTROL, Driver, What};
use crate::{
    outcome::Outcome,
    scenario::Scenario,
    schedule::{Draw, REPORT_WINDOW},
};
use evb_control::{Command, Config, Control, Event, Loss, Notice, Order, RunState};
use evb_core::{NodeId, Span, Time};
use evb_protocol::Config as Building;

/// Run control that waits longer than any fault lasts.
pub(super) fn new(scenario: &Scenario) -> Control {
    let config = &scenario.config;
    let (readouts, builders) = (config.readout_nodes(), config.builder_nodes());
    Control::new(Config {
        drain_timeout: Span::from_millis(200),
        report_window: REPORT_WINDOW,
        groups: vec![readouts, builders],
        ..Config::new(config.nodes())
    })
}

impl Driver {
    /// Commands the next run, and what the operator wants in it.
    pub(super) fn command_next_run(&mut self) {
        let Some(commands) = self.scenario.runs.get(self.commanded).cloned() else { return };
        let gaps = [Span::ZERO, Span::ZERO, Span::from_micros(50), Span::from_micros(500), Span::from_millis(20)];
        let gap = Draw(&mut self.random).pick(&gaps);
        let start = self.now + gap;
        self.commanded += 1;
        self.plan(start, CONTROL, What::Command(Command::Start));
        for (after, command) in commands {
            self.plan(start + after, CONTROL, What::Command(command));
        }
    }

    /// Delivers notices to run control, and carries out its orders.
    pub(super) fn hear(&mut self, what: What) {
        match what {
            What::Command(command) => self.command(command),
            What::Stop { run } => {
                let is_open = matches!(self.control.state(), RunState::Running | RunState::Degraded | RunState::Paused);
                if is_open && self.runs.len() == run + 1 {
                    self.command(Command::Stop);
                }
            }
            What::Notice { node, of, notice } => self.hear_notice(node, of, notice),
            What::Trouble(fault) => self.trouble(fault),
            _ => {
                self.control_timer = Time::MAX;
                self.control.handle_timeout(self.now);
            }
        }
        self.drain_control();
    }

    fn command(&mut self, command: Command) {
        let (state, run) = (self.control.state(), self.runs.last_mut());
        let is_hasty =
            state.is_active() && command == Command::Abort || state == RunState::Draining && command == Command::Stop;
        if let Some(run) = run {
            run.cut |= is_hasty;
        }
        self.control.handle_command(self.now, command);
    }

    /// Hands a notice to run control. Notices from or about a process that another has replaced are ignored.
    fn hear_notice(&mut self, node: NodeId, (of, process): (NodeId, u32), notice: Notice) {
        let slot = &mut self.slots[of.index()];
        match notice {
            Notice::Joined | Notice::Rejoined if process == slot.process => slot.known = process,
            _ if process == slot.known => {}
            _ => return,
        }
        self.control.handle_notice(self.now, node, notice);
    }

    fn drain_control(&mut self) {
        loop {
            while let Some((node, order)) = self.control.poll_order() {
                self.give(node, order);
            }
            match self.control.poll_event() {
                Some(Event::State(state)) => self.enter(state),
                Some(Event::NotDrained) => {
                    self.runs.last_mut().into_iter().for_each(|run| run.stood_still = true);
                }
                Some(Event::Lost { node, loss: Loss::Unreachable { .. } }) => self.exclude(node),
                Some(_) => {}
                None => break,
            }
        }
        if let Some((at, _)) = self.control.poll_timeout()
            && at < self.control_timer
        {
            self.control_timer = at;
            self.plan(at.max(self.now), CONTROL, What::ControlTimeout);
        }
    }

    /// Sends an order; those for one node stay in order.
    fn give(&mut self, node: NodeId, order: Order) {
        if node == Building::EVENT_MANAGER {
            match order {
                Order::Open => self.connection += 1,
                Order::Prepare => self.runs.push(Outcome::default()),
                Order::Resume => {
                    let now = self.now;
                    self.runs.last_mut().into_iter().for_each(|run| run.resumes.push(now));
                }
                _ => {}
            }
        }
        if order == Order::Die {
            self.note_gone(node);
        }
        let at = self.now + self.span(self.scenario.delay);
        let slot = &mut self.slots[node.index()];
        slot.ordered = slot.ordered.max(at);
        let (at, process) = (slot.ordered, slot.known);
        self.plan(at, node, What::Order { order, process });
    }

    fn enter(&mut self, state: RunState) {
        match state {
            RunState::Configuring => self.control.absent().into_iter().for_each(|node| self.replace(node)),
            RunState::Running => self.begin_run(),
            RunState::Stopped | RunState::Failed | RunState::Initial => {
                let now = self.now;
                if let Some(run) = self.runs.last_mut().filter(|run| run.started && !run.over) {
                    run.over = true;
                    run.failed = state == RunState::Failed;
                    run.end = now;
                }
                self.command_next_run();
            }
            RunState::Configured | RunState::Degraded | RunState::Paused | RunState::Splitting | RunState::Draining => {
            }
        }
    }

    fn begin_run(&mut self) {
        let index = self.runs.len() - 1;
        if std::mem::replace(&mut self.runs[index].started, true) {
            return;
        }
        if let Some(span) = self.scenario.stop_at {
            self.plan(self.now + span, CONTROL, What::Stop { run: index });
        }
        if !std::mem::replace(&mut self.troubled, true) {
            for (at, fault) in self.scenario.faults.clone() {
                self.plan(self.now + at.since(Time::ZERO), CONTROL, What::Trouble(fault));
            }
        }
    }

    /// Starts a new process for a node that run control does not have.
    fn replace(&mut self, id: NodeId) {
        self.end_process(id);
        self.slots[id.index()].is_there = true;
        self.tell(id, Notice::Joined);
    }

    /// A node tells run control of itself.
    pub(super) fn tell(&mut self, id: NodeId, notice: Notice) {
        self.notify(id, (id, self.slots[id.index()].process), notice);
    }

    /// A node tells run control of a process; what one node tells stays in order.
    pub(super) fn notify(&mut self, node: NodeId, of: (NodeId, u32), notice: Notice) {
        let at = self.now + self.span(self.scenario.delay);
        let slot = &mut self.slots[node.index()];
        slot.noticed = slot.noticed.max(at);
        let at = slot.noticed;
        self.plan(at, CONTROL, What::Notice { node, of, notice });
    }
}
