//! The configuration of a session: run control for one plan, and the account of its runs.

use crate::{
    control::Notice,
    error::NodeError,
    node_group::{Blueprint, NodeGroup},
    outcome::Outcome,
    run_info::RunInfo,
};
use evb_control::{Command, Config, Control, Notice as ControlNotice, RunState};
use evb_core::{NodeId, Span, Time};
use evb_experiment::{FaultAction, Plan};
use evb_record::Record;
use evb_unit::Progress;
use std::{sync::Arc, time::Duration};

/// Time beyond `run.peer_timeout` that nodes have for each step of the configuration.
const READY_GRACE: Span = Span::from_secs(5);

/// The part of `run.peer_timeout` for which reports of lost peers are collected, as a divisor. Transports check their
/// peers eight times within the timeout, so the nodes on both sides of a cut notice it within two checks of each other.
const REPORT_WINDOW: u64 = 4;

/// The part of a session that belongs to one plan.
pub(super) struct Configuration {
    pub(super) blueprint: Arc<Blueprint>,
    pub(super) control: Control,
    /// The nodes' reports and the findings of the latest run.
    pub(super) outcome: Outcome,
    /// The prepared or current run.
    pub(super) run: Option<RunInfo>,
    /// The run that is to follow without a stop.
    pub(super) next: Option<RunInfo>,
    /// Time for which triggers were turned away before the current run, if it has followed another without a stop.
    pub(super) switched: Option<Span>,
    /// A run is in progress.
    pub(super) is_running: bool,
    pub(super) has_shut_down: bool,
}

/// Consequence of a state for the session.
pub(super) enum Entered {
    /// Nodes are to be gathered.
    Configuring,
    /// A run has ended.
    End,
    /// There will be no run.
    NoRun(NodeError),
    Other,
}

impl Configuration {
    pub(super) fn new(blueprint: Arc<Blueprint>, config: Config) -> Self {
        let control = Control::new(config);
        let outcome = Outcome::new(&blueprint.plan);
        Self {
            blueprint,
            control,
            outcome,
            run: None,
            next: None,
            switched: None,
            is_running: false,
            has_shut_down: false,
        }
    }

    /// Number of the prepared or current run.
    pub(super) fn number(&self) -> Option<u64> {
        self.run.as_ref().map(|run| run.number)
    }

    pub(super) fn has(&self, plan: &Plan, text: &str) -> bool {
        self.blueprint.plan == *plan && self.blueprint.text == text
    }

    pub(super) fn command(&mut self, now: Time, command: Command) {
        if command == Command::Abort && self.is_running {
            self.outcome.note_abort();
        }
        self.has_shut_down |= command == Command::Shutdown && !self.control.state().is_active();
        self.control.handle_command(now, command);
    }

    pub(super) fn handle_notice(&mut self, now: Time, node: NodeId, notice: Notice, nodes: &mut dyn NodeGroup) {
        self.log(node, &notice);
        let control_notice = match notice {
            Notice::Joined => ControlNotice::Joined,
            Notice::Reset => ControlNotice::Reset,
            Notice::Opened { .. } | Notice::Ready => ControlNotice::Ready,
            // It counts for the next run already, and will be repeated.
            Notice::Progress(_) if self.control.is_over(node) => return,
            Notice::Progress(report) => match self.outcome.report(node, report) {
                true => ControlNotice::Moved,
                false => return,
            },
            // The answer to a question that is not asked any more.
            Notice::Note(_) | Notice::Sample(_) | Notice::Checked { .. } => return,
            Notice::Settled => ControlNotice::Settled,
            Notice::Drained => ControlNotice::Drained,
            Notice::NoBuilders => ControlNotice::NoBuilders,
            Notice::Lost { peer, reason } => {
                self.outcome.note_reason(NodeId(peer), node, reason);
                ControlNotice::LostPeer(NodeId(peer))
            }
            Notice::Failed(error) => {
                self.outcome.note_error(node, error);
                ControlNotice::Failed
            }
            Notice::Finished(report) => {
                self.outcome.report(node, report);
                ControlNotice::Finished
            }
            Notice::Gone { reason } => {
                self.outcome.note_reason(node, node, nodes.fate(node).unwrap_or(reason));
                ControlNotice::Gone
            }
        };
        self.control.handle_notice(now, node, control_notice);
    }

    /// Logs a notice. Reports are left out: they come several times a second.
    pub(super) fn log(&self, node: NodeId, notice: &Notice) {
        let name = |node| self.blueprint.plan.building.node_name(node);
        let node = name(node);
        match notice {
            Notice::Progress(_) | Notice::Finished(_) | Notice::Sample(_) => {}
            Notice::Lost { peer, reason } => {
                tracing::warn!(node, peer = name(NodeId(*peer)), reason, "connection lost");
            }
            Notice::Gone { reason } => tracing::info!(node, reason, "node gone"),
            Notice::Failed(error) => tracing::error!(node, %error, "node failed"),
            notice => tracing::debug!(node, ?notice, "notice"),
        }
    }

    pub(super) fn enter(&mut self, state: RunState) -> Entered {
        match state {
            RunState::Configuring => Entered::Configuring,
            RunState::Running if !self.is_running => {
                self.is_running = true;
                self.outcome.begin_run(&self.blueprint.plan);
                Entered::Other
            }
            RunState::Stopped | RunState::Failed if self.is_running => Entered::End,
            RunState::Initial | RunState::Failed if !self.has_shut_down => {
                self.run = None;
                Entered::NoRun(self.outcome.take_error().unwrap_or_else(NodeError::stopped))
            }
            _ => Entered::Other,
        }
    }

    pub(super) fn progress(&self, now: Time) -> Progress {
        let stopping = self.control.state() == RunState::Draining;
        self.outcome.progress(self.control.elapsed(now).as_secs_f64(), stopping)
    }

    /// Lost nodes are brought back during the run.
    pub(super) fn rejoins(&self) -> bool {
        self.control.may_rejoin()
    }

    pub(super) fn record(&mut self, now: Time, nodes: &dyn NodeGroup) -> Record {
        self.is_running = false;
        self.run = None;
        self.close(self.control.elapsed(now), nodes)
    }

    /// Goes on with the next run. Returns the record of the one before.
    pub(super) fn go_over(&mut self, elapsed: Span, switched: Span, nodes: &dyn NodeGroup) -> Record {
        let record = self.close(elapsed, nodes);
        self.run = self.next.take();
        self.switched = Some(switched);
        self.outcome.begin_next(&self.blueprint.plan, &self.control.lost());
        tracing::info!(run = self.number(), switched_ms = switched.as_secs_f64() * 1e3, "next run");
        record
    }

    pub(super) fn close(&mut self, elapsed: Span, nodes: &dyn NodeGroup) -> Record {
        let plan = &self.blueprint.plan;
        let record = self.outcome.record(plan, nodes.transport(plan), elapsed.as_secs_f64());
        Record { switch_seconds: self.switched.take().map(Span::as_secs_f64), ..record }
    }
}

/// The longest wait for a front end that hears run control; none if no front end does.
fn front_end_timeout(plan: &Plan) -> Option<Span> {
    let controls = plan.sources.iter().filter_map(|source| source.live()?.control.as_ref());
    controls.map(|control| control.timeout).max()
}

/// The configuration of run control for a plan.
pub(super) fn config(plan: &Plan, patience: Duration) -> Config {
    let kills = plan.faults.iter().filter_map(|fault| match fault.action {
        FaultAction::Kill { at } => Some((at, fault.node)),
        _ => None,
    });
    let front_ends = front_end_timeout(plan);
    // The node of a front end names it when its timeout is over: run control must not be faster.
    let longest = plan.run.peer_timeout.max(front_ends.unwrap_or(Span::ZERO));
    Config {
        front_ends: front_ends.is_some(),
        join_timeout: Span(patience.as_nanos() as u64 * 1000),
        ready_timeout: Span(longest.0.saturating_add(READY_GRACE.0)),
        drain_timeout: plan.run.drain_timeout,
        report_window: Span(plan.run.peer_timeout.0 / REPORT_WINDOW),
        groups: vec![plan.building.readout_nodes(), plan.building.builder_nodes()],
        duration: plan.trigger.duration,
        kills: kills.collect(),
        required: plan.run.needs.required.clone(),
        least: vec![
            (plan.building.readout_nodes(), plan.run.needs.readouts),
            (plan.building.builder_nodes(), plan.run.needs.builders),
        ],
        ..Config::new(plan.building.nodes())
    }
}
