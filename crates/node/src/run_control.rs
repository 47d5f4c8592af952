//! Run control: starts the nodes, watches them, stops them, and makes the record.

use crate::control::{NodeError, Notice, Order};
use evb_core::NodeId;
use evb_experiment::{FaultAction, Plan};
use evb_protocol::Config;
use evb_record::{Finding, FindingKind, Record};
use evb_unit::{Account, Progress};
use std::{
    collections::BTreeSet,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// How often run control looks up from its notices.
const TICK: Duration = Duration::from_millis(20);

/// How long a finishing run waits for nodes that their peers have given up.
const LOST_GRACE: Duration = Duration::from_secs(1);

/// Whoever watches a run.
pub trait Observer {
    /// How things stand, several times a second.
    fn progress(&mut self, progress: &Progress);
    /// Something that people should know now.
    fn note(&mut self, text: &str);
    /// Whether the user wants the run to stop; it then drains.
    fn stop(&self) -> &AtomicBool;
}

/// Why a run could not even begin.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunError {
    /// What is wrong, and what to do.
    pub error: NodeError,
}

impl From<NodeError> for RunError {
    fn from(error: NodeError) -> Self {
        Self { error }
    }
}

/// How run control reaches the nodes.
pub(crate) trait Nodes {
    fn order(&mut self, node: NodeId, order: Order);
    /// How a node that is gone has ended, where this can be told.
    fn fate(&mut self, node: NodeId) -> Option<String>;
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    Stopping,
    /// Builders end their events with what is there.
    Cutting,
    Finishing {
        since: Instant,
    },
}

pub(crate) struct RunControl<'a, N> {
    plan: &'a Plan,
    nodes: N,
    notices: &'a Receiver<(NodeId, Notice)>,
    observer: &'a mut dyn Observer,
    account: Account,
    started: Instant,
    drained_at: Option<Instant>,
    phase: Phase,
    /// What the reports of a stopped run say has been done, and since when they say no more.
    done: (u64, Instant),
    /// Nodes that have neither finished nor gone.
    expected: BTreeSet<NodeId>,
    gone: BTreeSet<NodeId>,
    deaths: Vec<(Duration, NodeId)>,
}

impl<'a, N: Nodes> RunControl<'a, N> {
    pub(crate) fn new(
        plan: &'a Plan,
        nodes: N,
        notices: &'a Receiver<(NodeId, Notice)>,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let all = (0..plan.building.nodes()).map(NodeId);
        let mut deaths: Vec<_> = plan
            .faults
            .iter()
            .filter_map(|fault| match fault.action {
                FaultAction::Kill { at } => Some((at.as_duration(), fault.node)),
                _ => None,
            })
            .collect();
        deaths.sort_unstable();
        Self {
            plan,
            nodes,
            notices,
            observer,
            account: Account::new(&plan.building),
            started: Instant::now(),
            drained_at: None,
            phase: Phase::Running,
            done: (0, Instant::now()),
            expected: all.collect(),
            gone: BTreeSet::new(),
            deaths,
        }
    }

    /// Runs from the start to the record. All nodes are there and listen.
    pub(crate) fn run(mut self, transport: &str) -> Result<Record, RunError> {
        if let Err(error) = self.wait_until_ready() {
            // Nodes that still wait for their peers would wait long.
            self.order_all(Order::Die);
            return Err(error);
        }
        self.started = Instant::now();
        self.order_all(Order::Start);
        self.tick();
        let mut next_tick = Instant::now() + TICK;
        while !self.expected.is_empty() {
            match self.notices.recv_timeout(next_tick.saturating_duration_since(Instant::now())) {
                Ok((node, notice)) => self.handle(node, notice),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + TICK;
                self.tick();
            }
        }
        self.order_all(Order::Exit);
        let seconds = self.drained_at.unwrap_or_else(Instant::now).duration_since(self.started).as_secs_f64();
        Ok(self.account.record(self.plan, transport, seconds))
    }

    fn wait_until_ready(&mut self) -> Result<(), RunError> {
        let timeout = self.plan.run.peer_timeout.as_duration() + Duration::from_secs(5);
        let end = Instant::now() + timeout;
        let mut waiting = self.expected.clone();
        while !waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now()).min(TICK);
            match self.notices.recv_timeout(left) {
                Ok((node, Notice::Ready)) => _ = waiting.remove(&node),
                Ok((_, Notice::Failed(error))) => return Err(error.into()),
                Ok((node, Notice::Gone { reason })) => {
                    let name = self.plan.building.node_name(node);
                    return Err(NodeError::new(format!("{name} ended before the run began: {reason}")).into());
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(NodeError::new("all nodes ended before the run began").into());
                }
            }
            if !waiting.is_empty() && self.observer.stop().load(Ordering::Relaxed) {
                return Err(NodeError::stopped().into());
            }
            if !waiting.is_empty() && Instant::now() >= end {
                return Err(self.not_ready(&waiting).into());
            }
        }
        Ok(())
    }

    fn not_ready(&self, waiting: &BTreeSet<NodeId>) -> NodeError {
        let names: Vec<_> = waiting.iter().map(|&node| self.plan.building.node_name(node)).collect();
        NodeError::new(format!("not all nodes are ready: {} missing", names.join(", ")))
            .hint("is the machine overloaded? `--set run.peer_timeout=\"30 s\"` waits longer")
    }

    fn order_all(&mut self, order: Order) {
        for node in (0..self.plan.building.nodes()).map(NodeId) {
            if !self.gone.contains(&node) {
                self.nodes.order(node, order);
            }
        }
    }

    fn handle(&mut self, node: NodeId, notice: Notice) {
        let name = self.plan.building.node_name(node);
        match notice {
            Notice::Ready => {}
            Notice::Progress(report) => self.account.report(node, report),
            Notice::Drained => {
                self.drained_at.get_or_insert_with(Instant::now);
                self.finish();
            }
            Notice::NoBuilders => {
                self.find(
                    FindingKind::NoBuilders,
                    "events",
                    "no builder unit is left: the run ends with events unbuilt",
                );
                self.finish();
            }
            Notice::Lost { peer, reason } => self.notice_lost(&name, NodeId(peer), &reason),
            Notice::Failed(error) => {
                let finding = Finding::new(FindingKind::Failed, &name, format!("{name}: {error}"));
                self.tell(Finding { hint: error.hint, ..finding });
                self.lose(node);
                self.stop();
            }
            Notice::Finished(report) => {
                self.account.report(node, report);
                self.expected.remove(&node);
            }
            Notice::Gone { reason } => {
                if self.expected.contains(&node) && !self.gone.contains(&node) {
                    let reason = self.nodes.fate(node).unwrap_or(reason);
                    self.find(FindingKind::LostNode, &name, format!("{name} is gone: {reason}"));
                    self.lose(node);
                }
            }
        }
    }

    /// Peers cannot reach a node that run control may still hear: a network that is cut, or a stopped process. It has
    /// no part in the run any more; should it wake up, it finds all its peers gone, and is not believed.
    fn notice_lost(&mut self, reporter: &str, peer: NodeId, reason: &str) {
        if self.phase_is_finishing() || self.gone.contains(&peer) || self.account.is_lost(reporter) {
            return;
        }
        let name = self.plan.building.node_name(peer);
        if self.account.lose(&name) {
            // Nodes find out one after the other: one that wakes up meanwhile must not be given events by the last.
            self.nodes.order(Config::EVENT_MANAGER, Order::Lost(peer));
            self.find(FindingKind::LostNode, &name, format!("{name} is lost to its peers: {reason}"));
            self.nodes.order(peer, Order::Finish);
        }
        if peer == Config::EVENT_MANAGER {
            self.finish();
        }
    }

    fn lose(&mut self, node: NodeId) {
        self.gone.insert(node);
        self.expected.remove(&node);
        self.account.lose(&self.plan.building.node_name(node));
        // Without an event manager nobody says when the events are over.
        if node == Config::EVENT_MANAGER {
            self.finish();
        }
    }

    fn find(&mut self, kind: FindingKind, subject: &str, message: impl Into<String>) {
        self.tell(Finding::new(kind, subject, message));
    }

    /// Shows a finding now, and keeps it for the record.
    fn tell(&mut self, finding: Finding) {
        self.observer.note(&finding.message);
        self.account.find(finding);
    }

    fn phase_is_finishing(&self) -> bool {
        matches!(self.phase, Phase::Finishing { .. })
    }

    fn stop(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Stopping;
            self.done.1 = Instant::now();
            self.nodes.order(Config::EVENT_MANAGER, Order::Stop);
        }
    }

    /// What is open waits for something that does not come: what is there of it is stored.
    fn cut(&mut self) {
        let message = format!("the run did not drain: nothing moved for {}", self.plan.run.drain_timeout);
        let finding = Finding::new(FindingKind::NotDrained, "evm", message);
        self.tell(finding.hint(
            "what is there of the open events is stored; `--set run.drain_timeout=TIME` waits longer for the rest",
        ));
        (self.phase, self.done.1) = (Phase::Cutting, Instant::now());
        self.order_all(Order::Cut);
    }

    fn finish(&mut self) {
        if !self.phase_is_finishing() {
            self.phase = Phase::Finishing { since: Instant::now() };
            self.done.1 = Instant::now();
            self.order_all(Order::Finish);
        }
    }

    fn tick(&mut self) {
        let elapsed = self.started.elapsed();
        while self.deaths.first().is_some_and(|(at, _)| *at <= elapsed) {
            let (_, node) = self.deaths.remove(0);
            self.nodes.order(node, Order::Die);
        }
        let over = self.plan.trigger.duration.is_some_and(|duration| elapsed >= duration.as_duration());
        if over || self.observer.stop().load(Ordering::Relaxed) {
            self.stop();
        }
        let stands_still = self.stands_still();
        match self.phase {
            Phase::Stopping if stands_still => self.cut(),
            Phase::Cutting if stands_still => self.finish(),
            Phase::Finishing { since } if stands_still || self.only_lost_remain(since) => self.give_up(),
            Phase::Running | Phase::Stopping | Phase::Cutting | Phase::Finishing { .. } => {}
        }
        let progress = self.account.progress(elapsed.as_secs_f64(), self.phase != Phase::Running);
        self.observer.progress(&progress);
    }

    /// Whether a stopped run has done nothing for so long that nothing will come. However long it takes, a slow one goes on.
    fn stands_still(&mut self) -> bool {
        let done = self.account.done() + (self.plan.building.nodes() as usize - self.expected.len()) as u64;
        if done != self.done.0 {
            self.done = (done, Instant::now());
        }
        self.done.1.elapsed() > self.plan.run.drain_timeout.as_duration()
    }

    /// Whether all that could still finish are nodes whose peers have given them up, and have had a moment to do so.
    fn only_lost_remain(&self, since: Instant) -> bool {
        let lost = |&node: &NodeId| self.account.is_lost(&self.plan.building.node_name(node));
        since.elapsed() > LOST_GRACE && self.expected.iter().all(lost)
    }

    /// Nodes that do not answer are lost.
    fn give_up(&mut self) {
        for node in std::mem::take(&mut self.expected) {
            let name = self.plan.building.node_name(node);
            if self.account.lose(&name) {
                let message = format!("{name} did not finish: nothing moved for {}", self.plan.run.drain_timeout);
                self.find(FindingKind::LostNode, &name, message);
            }
            self.nodes.order(node, Order::Die);
            self.gone.insert(node);
        }
    }
}
