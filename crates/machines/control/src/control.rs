//! The state machine.

use crate::{
    Command, Config, Event, Loss, Notice, Order,
    lost_peers::LostPeers,
    nodes::Nodes,
    state::{AfterSplit, ConfigureStep, Phase, RunState},
};
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{NodeId, NodeRange, Span, Time};

mod cut_off;

/// The reason for a call of [`Control::handle_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A step of the configuration takes too long.
    Step,
    /// A node is to die on purpose.
    Kill,
    /// The run has lasted for as long as it should.
    Duration,
    /// Nothing has moved for long in a run that ends.
    Standstill,
    /// The nodes that have not finished are all lost.
    Grace,
    /// Reports of lost peers were collected for long enough.
    LostPeers,
}

/// Run control as a machine.
///
/// The contract is that of every machine: pass it each input with the time, then drain [`poll_order`](Self::poll_order)
/// and [`poll_event`](Self::poll_event) until both return `None`, then ask [`poll_timeout`](Self::poll_timeout) when to
/// call [`handle_timeout`](Self::handle_timeout).
#[derive(Clone, Debug)]
pub struct Control {
    config: Config,
    phase: Phase,
    shown: RunState,
    nodes: Nodes,
    /// Start of the latest run.
    started: Time,
    /// End of the last event of the latest run.
    drained: Option<Time>,
    /// Time for which the latest run was paused.
    paused: Span,
    /// Latest time at which something moved.
    moved: Time,
    /// Number of kills of the latest run that are carried out.
    killed: usize,
    /// Reports of lost peers by which no node was given up yet.
    lost_peers: LostPeers,
    /// The event manager's report that the run is over, with its time, while reports of lost peers wait.
    reported_end: Option<(Time, Notice)>,
    /// The latest run has lost a node that every run needs.
    broken: bool,
    /// The start by the operator, from which duration and kills count. Runs may have followed each other since.
    begun: Time,
    /// Another run begins when this one has ended.
    again: bool,
    /// Runs that began for nodes that were there again, since the operator's start.
    rejoins: u32,
    orders: VecDeque<(NodeId, Order)>,
    events: VecDeque<Event>,
}

impl Control {
    /// Run control that waits for [`Command::Configure`].
    pub fn new(mut config: Config) -> Self {
        config.kills.sort_unstable();
        Self {
            nodes: Nodes::new(config.nodes),
            config,
            phase: Phase::Initial,
            shown: RunState::Initial,
            started: Time::ZERO,
            drained: None,
            paused: Span::ZERO,
            moved: Time::ZERO,
            killed: 0,
            lost_peers: LostPeers::default(),
            reported_end: None,
            broken: false,
            begun: Time::ZERO,
            again: false,
            rejoins: 0,
            orders: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The present state.
    pub fn state(&self) -> RunState {
        match self.phase {
            Phase::Initial => RunState::Initial,
            Phase::Configuring { .. } => RunState::Configuring,
            Phase::Configured => RunState::Configured,
            Phase::Running if self.nodes.any_lost() => RunState::Degraded,
            Phase::Running => RunState::Running,
            Phase::Paused { .. } => RunState::Paused,
            Phase::Settling { .. } | Phase::Switching { .. } => RunState::Splitting,
            Phase::Draining | Phase::Cutting | Phase::Finishing { .. } => RunState::Draining,
            Phase::Stopped => RunState::Stopped,
            Phase::Failed => RunState::Failed,
        }
    }

    /// The time from the start of the latest run to the end of its last event; to `now` when not all have ended.
    pub fn elapsed(&self, now: Time) -> Span {
        self.drained.unwrap_or(now).since(self.started)
    }

    /// Nodes that have not joined.
    pub fn absent(&self) -> Vec<NodeId> {
        self.nodes.absent()
    }

    /// True while the nodes go over from one run to the next, and this one has done so: its reports are those of the
    /// next.
    pub fn is_over(&self, node: NodeId) -> bool {
        matches!(self.phase, Phase::Switching { .. }) && self.nodes.knows(node) && !self.nodes.is_pending(node)
    }

    /// True if lost nodes that are there again begin a run by themselves.
    pub const fn may_rejoin(&self) -> bool {
        self.config.rejoin && self.rejoins < Config::MOST_REJOINS
    }

    /// Nodes that are lost to the latest run.
    pub fn lost(&self) -> Vec<NodeId> {
        self.nodes.lost()
    }

    /// True when the node is lost to the latest run.
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.nodes.is_lost(node)
    }

    // ---- input

    /// Takes a command of the operator.
    pub fn handle_command(&mut self, now: Time, command: Command) {
        match (command, self.phase) {
            (Command::Configure, Phase::Initial | Phase::Configured | Phase::Stopped | Phase::Failed) => {
                self.gather(now, false);
            }
            (Command::Start, Phase::Initial | Phase::Configured | Phase::Stopped | Phase::Failed) => {
                self.rejoins = 0;
                self.prepare(now);
            }
            (Command::Split, Phase::Running) if self.config.may_split => self.split(now),
            (Command::Pause, Phase::Running) => {
                self.phase = Phase::Paused { since: now };
                self.order_data_taking(Order::Pause);
            }
            (Command::Resume, Phase::Paused { since }) => {
                self.end_pause(now, since);
                self.phase = Phase::Running;
                self.order_data_taking(Order::Resume);
            }
            (Command::Stop | Command::Abort, Phase::Configuring { .. }) => self.give_up_configuration(Phase::Initial),
            (Command::Stop, phase) if phase.takes_triggers() || phase.is_splitting() => self.stop(now),
            (Command::Stop, Phase::Draining) => self.cut(now),
            // It is about to end.
            (Command::Stop, Phase::Finishing { .. }) => {}
            (Command::Abort, Phase::Finishing { .. }) => self.end_without_answers(now),
            (Command::Stop | Command::Abort, phase) if phase.is_building() => self.finish(now),
            (Command::Shutdown, _) if !self.state().is_active() => {
                self.order_all(Order::Exit);
                self.nodes.disconnect_all();
                self.phase = Phase::Initial;
            }
            (command, _) => self.events.push_back(Event::Refused { command, state: self.state() }),
        }
        if matches!(command, Command::Stop | Command::Abort) {
            self.again = false;
        }
        self.show_state();
    }

    /// Takes the notice of a node. Notices of nodes beyond the configuration are ignored.
    pub fn handle_notice(&mut self, now: Time, node: NodeId, notice: Notice) {
        if !self.nodes.knows(node) {
            return;
        }
        // What a node says before it has confirmed a reset belongs to a configuration that was given up.
        let is_of_process = matches!(notice, Notice::Joined | Notice::Rejoined | Notice::Gone | Notice::Reset);
        if self.nodes.is_resetting(node) && !is_of_process {
            return;
        }
        match notice {
            Notice::Reset => self.nodes.confirm_reset(node),
            Notice::Joined => self.join(now, node),
            Notice::Ready => self.ready(now, node),
            Notice::Moved => self.moved = now,
            Notice::Settled if node == self.config.event_manager => self.switch(now),
            Notice::Drained | Notice::NoBuilders if node == self.config.event_manager => self.note_end(now, notice),
            Notice::LostPeer(peer) if self.nodes.knows(peer) => self.lose_peer(now, node, peer),
            Notice::Finished => self.finished(now, node),
            Notice::Rejoined => self.rejoin(now, node),
            Notice::Failed => self.fail(now, node),
            Notice::Gone => self.leave(now, node),
            Notice::Settled | Notice::Drained | Notice::NoBuilders | Notice::LostPeer(_) => {}
        }
        self.end_when_all_finished(now);
        self.end_without_lost_peers(now);
        self.stop_when_too_few(now);
        self.rejoin_when_all_wait(now);
        self.begin_again(now);
        self.show_state();
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((_, timer)) = self.poll_timeout().filter(|(at, _)| *at <= now) {
            match timer {
                Timer::Step => self.step_is_late(),
                Timer::Kill => {
                    let (_, node) = self.config.kills[self.killed];
                    self.killed += 1;
                    self.order(node, Order::Die);
                }
                Timer::Duration => self.stop(now),
                Timer::Standstill if matches!(self.phase, Phase::Draining | Phase::Settling { .. }) => {
                    // A run that does not settle is stopped, and the next one begins anew.
                    self.again |= self.phase.is_splitting();
                    self.events.push_back(Event::NotDrained);
                    if self.phase.is_splitting() {
                        self.stop(now);
                    }
                    self.cut(now);
                }
                Timer::Standstill if self.phase == Phase::Cutting => self.finish(now),
                Timer::Standstill | Timer::Grace => self.end_without_answers(now),
                Timer::LostPeers => self.exclude_cut_off(now),
            }
        }
        self.end_without_lost_peers(now);
        self.stop_when_too_few(now);
        self.rejoin_when_all_wait(now);
        self.begin_again(now);
        self.show_state();
    }

    // ---- output

    /// The next order, and the node that it is for.
    pub fn poll_order(&mut self) -> Option<(NodeId, Order)> {
        self.orders.pop_front()
    }

    /// The next event for people.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) wants to be called next, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Timer)> {
        let step = match self.phase {
            Phase::Configuring { until, .. } => Some((until, Timer::Step)),
            _ => None,
        };
        let kill = self.config.kills.get(self.killed).filter(|_| self.phase.is_building());
        let kill = kill.map(|&(after, _)| (self.begun + after, Timer::Kill));
        let duration = self.config.duration.filter(|_| self.phase == Phase::Running);
        let duration = duration.map(|duration| (self.begun + duration + self.paused, Timer::Duration));
        let standstill = (self.moved + self.config.drain_timeout, Timer::Standstill);
        let standstill = Some(standstill).filter(|_| self.phase.is_ending());
        let grace = match self.phase {
            Phase::Finishing { since } | Phase::Switching { since, .. } if self.nodes.only_lost_pending() => {
                Some((since + Config::LOST_GRACE, Timer::Grace))
            }
            _ => None,
        };
        let lost_peers = self.lost_peers.until().filter(|_| self.phase.is_building());
        let lost_peers = lost_peers.map(|until| (until, Timer::LostPeers));
        [step, kill, duration, standstill, grace, lost_peers].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    // ---- the configuration

    /// Waits for all nodes, and then connects them anew.
    fn gather(&mut self, now: Time, start: bool) {
        self.order_all(Order::Reset);
        self.nodes.reset_all();
        self.phase = Phase::Configuring { step: ConfigureStep::Join, until: now + self.config.join_timeout, start };
        self.open_when_all_are_there(now);
    }

    fn open_when_all_are_there(&mut self, now: Time) {
        if let Phase::Configuring { step: ConfigureStep::Join, start, .. } = self.phase
            && self.nodes.absent().is_empty()
        {
            self.begin_step(now, ConfigureStep::Open, start);
        }
    }

    fn begin_step(&mut self, now: Time, step: ConfigureStep, start: bool) {
        self.phase = Phase::Configuring { step, until: now + self.config.ready_timeout, start };
        self.nodes.ask_all();
        match step {
            ConfigureStep::Join => {}
            ConfigureStep::Open => self.order_all(Order::Open),
            ConfigureStep::Connect => self.order_all(Order::Connect),
            ConfigureStep::Prepare => self.order_all(Order::Prepare),
            ConfigureStep::Arm => self.order_all(Order::Arm),
        }
    }

    fn join(&mut self, now: Time, node: NodeId) {
        match self.phase {
            Phase::Configuring { step: ConfigureStep::Join, .. } => {
                self.nodes.join(node);
                self.open_when_all_are_there(now);
            }
            Phase::Configuring { step, .. } => {
                self.nodes.join(node);
                self.not_ready(step, node);
            }
            // It has no connection to the others, and takes part after the next configuration.
            phase if phase.is_building() || phase.is_ending() => {
                self.nodes.wait(node);
                self.events.push_back(Event::Waits(node));
            }
            _ => self.nodes.join(node),
        }
    }

    fn ready(&mut self, now: Time, node: NodeId) {
        let Phase::Configuring { step, start, .. } = self.phase else { return };
        self.nodes.answer(node);
        if step == ConfigureStep::Join || !self.nodes.none_pending() {
            return;
        }
        match step {
            ConfigureStep::Join => {}
            ConfigureStep::Open => self.begin_step(now, ConfigureStep::Connect, start),
            ConfigureStep::Connect if start => {
                self.nodes.connect_all();
                self.begin_step(now, ConfigureStep::Prepare, true);
            }
            ConfigureStep::Connect => {
                self.nodes.connect_all();
                self.phase = Phase::Configured;
            }
            ConfigureStep::Prepare if self.config.front_ends => self.begin_step(now, ConfigureStep::Arm, true),
            ConfigureStep::Prepare | ConfigureStep::Arm => self.start(now),
        }
    }

    fn step_is_late(&mut self) {
        if let Phase::Configuring { step, .. } = self.phase {
            let nodes = if step == ConfigureStep::Join { self.nodes.absent() } else { self.nodes.pending() };
            self.events.push_back(Event::Late { step, nodes });
            self.give_up_configuration(Phase::Failed);
        }
    }

    fn not_ready(&mut self, step: ConfigureStep, node: NodeId) {
        self.events.push_back(Event::NotReady { step, node });
        self.give_up_configuration(Phase::Failed);
    }

    fn give_up_configuration(&mut self, phase: Phase) {
        // Nodes that still wait for their peers would wait long.
        self.order_all(Order::Reset);
        self.nodes.reset_all();
        self.phase = phase;
    }

    // ---- the run

    /// Begins the next run: connected nodes open their files, others are gathered first.
    fn prepare(&mut self, now: Time) {
        if self.nodes.all_connected() {
            self.begin_step(now, ConfigureStep::Prepare, true)
        } else {
            self.gather(now, true)
        }
    }

    fn start(&mut self, now: Time) {
        self.phase = Phase::Running;
        self.started = now;
        self.begun = now;
        self.moved = now;
        self.drained = None;
        self.paused = Span::ZERO;
        self.killed = 0;
        self.broken = false;
        self.lost_peers.clear();
        self.reported_end = None;
        self.nodes.begin_run();
        self.order_all(Order::Start);
    }

    fn end_pause(&mut self, now: Time, since: Time) {
        self.paused.0 += now.since(since).0;
    }

    fn stop(&mut self, now: Time) {
        if let Phase::Switching { then, .. } = &mut self.phase {
            *then = AfterSplit::Stop.max(*then);
            return;
        }
        if let Phase::Paused { since } = self.phase {
            self.end_pause(now, since);
        }
        self.phase = Phase::Draining;
        self.moved = now;
        self.order_data_taking(Order::Stop);
    }

    /// Begins the next run without a stop, or with a short one when lost nodes are there again.
    fn split(&mut self, now: Time) {
        if self.nodes.all_lost_wait() {
            self.again = true;
            return self.stop(now);
        }
        self.phase = Phase::Settling { since: now };
        self.moved = now;
        self.order(self.config.event_manager, Order::Settle);
    }

    /// The last event of the run has ended: lets all nodes of the run go over to the next one.
    fn switch(&mut self, now: Time) {
        let Phase::Settling { since } = self.phase else { return };
        self.phase = Phase::Switching { since, then: AfterSplit::GoOn };
        self.drained = Some(now);
        self.moved = now;
        self.nodes.ask_those_of_run();
        let nodes = self.nodes.pending();
        self.orders.extend(nodes.into_iter().map(|node| (node, Order::Next)));
    }

    /// All nodes have gone over: the next run continues, or ends if a command or loss came in between.
    fn go_over(&mut self, now: Time, since: Time, then: AfterSplit) {
        let (elapsed, switched) = (self.elapsed(now), now.since(since));
        self.events.push_back(Event::NextRun { elapsed, switched });
        self.phase = Phase::Running;
        self.started = now;
        self.moved = now;
        self.drained = None;
        self.nodes.ask_those_of_run();
        match then {
            AfterSplit::GoOn => self.order(self.config.event_manager, Order::Resume),
            AfterSplit::Stop => self.stop(now),
            AfterSplit::Finish => self.finish(now),
        }
    }

    /// Begins a run that was to follow the one that has ended.
    fn begin_again(&mut self, now: Time) {
        if matches!(self.phase, Phase::Stopped | Phase::Failed) && core::mem::take(&mut self.again) && !self.broken {
            self.show_state();
            self.prepare(now);
        }
    }

    /// Begins the next run with the lost nodes that are there again.
    fn rejoin_when_all_wait(&mut self, now: Time) {
        if self.may_rejoin() && self.phase == Phase::Running && self.nodes.all_lost_wait() {
            self.rejoins += 1;
            self.split(now);
        }
    }

    /// Ends open events with the fragments that are there.
    fn cut(&mut self, now: Time) {
        self.phase = Phase::Cutting;
        self.moved = now;
        self.order_all(Order::Cut);
    }

    /// The last event has ended at `at`.
    fn drain(&mut self, now: Time, at: Time) {
        if self.phase.is_building() {
            self.drained = Some(at);
            self.finish(now);
        }
    }

    fn lose_builders(&mut self, now: Time) {
        if self.phase.is_building() {
            self.broken = true;
            self.events.push_back(Event::NoBuilders);
            self.finish(now);
        }
    }

    fn finish(&mut self, now: Time) {
        if let Phase::Switching { then, .. } = &mut self.phase {
            *then = AfterSplit::Finish;
            return;
        }
        self.phase = Phase::Finishing { since: now };
        self.moved = now;
        let manager = self.config.event_manager;
        if self.nodes.is_lost(manager) {
            // The end of the run is not the end of the data.
            self.order_all(Order::Lost(manager));
        }
        self.order_all(Order::Finish);
        self.end_when_all_finished(now);
    }

    fn finished(&mut self, now: Time, node: NodeId) {
        if matches!(self.phase, Phase::Finishing { .. } | Phase::Switching { .. }) {
            self.moved = now;
        }
        // A node that its peers have lost was ordered to finish, and does so before the others.
        self.nodes.answer(node);
        self.end_when_all_finished(now);
    }

    fn end_when_all_finished(&mut self, now: Time) {
        if !self.nodes.none_pending() {
            return;
        }
        match self.phase {
            Phase::Finishing { .. } => self.phase = if self.broken { Phase::Failed } else { Phase::Stopped },
            Phase::Switching { since, then } => self.go_over(now, since, then),
            _ => {}
        }
    }

    /// Ends the run without the nodes that do not answer.
    fn end_without_answers(&mut self, now: Time) {
        for node in self.nodes.pending() {
            self.lose(node, Loss::Silent);
            self.order(node, Order::Die);
            self.nodes.leave(node);
        }
        self.end_when_all_finished(now);
    }

    // ---- losses

    /// Stops a run that has lost a node that it needs.
    fn stop_when_too_few(&mut self, now: Time) {
        let is_running = self.phase.takes_triggers();
        let is_lost = |node: &NodeId| self.nodes.is_lost(*node);
        let lacks = |(range, least): &(NodeRange, u16)| {
            range.iter().filter(|node| !is_lost(node)).count() < usize::from(*least)
        };
        if is_running && (self.config.required.iter().any(is_lost) || self.config.least.iter().any(lacks)) {
            self.events.push_back(Event::TooFew);
            self.stop(now);
        }
    }

    /// Marks a node as lost; does nothing when it was.
    fn lose(&mut self, node: NodeId, loss: Loss) {
        if self.nodes.lose(node) {
            self.events.push_back(Event::Lost { node, loss });
        }
        self.lost_peers.forget(node);
        self.broken |= node == self.config.event_manager;
    }

    fn leave(&mut self, now: Time, node: NodeId) {
        self.lost_peers.forget(node);
        match self.phase {
            Phase::Configuring { step: ConfigureStep::Join, .. } => self.nodes.leave(node),
            Phase::Configuring { step, .. } => {
                self.nodes.leave(node);
                self.not_ready(step, node);
            }
            phase if phase.is_building() || phase.is_ending() => {
                if self.nodes.is_pending(node) {
                    // That its process has ended says more than that its peers cannot reach it, and may be known later.
                    let was_unreachable = self.nodes.is_lost(node);
                    self.lose(node, Loss::Gone);
                    if was_unreachable {
                        self.events.push_back(Event::Lost { node, loss: Loss::Gone });
                    }
                }
                self.nodes.leave(node);
                self.go_on_without(now, node);
            }
            _ => self.nodes.leave(node),
        }
    }

    /// Handles a node that cannot continue and has reported why. The run drains, so that the operator knows at once.
    fn fail(&mut self, now: Time, node: NodeId) {
        match self.phase {
            Phase::Configuring { step, .. } => self.not_ready(step, node),
            phase if phase.is_building() || phase.is_ending() => {
                self.lose(node, Loss::Failed);
                self.nodes.answer(node);
                if self.phase.takes_triggers() || self.phase.is_splitting() {
                    self.stop(now);
                }
                if self.phase.is_building() {
                    // It leaves its peers, which else would wait for it.
                    self.order(node, Order::Finish);
                }
                self.go_on_without(now, node);
            }
            _ => _ = self.nodes.lose(node),
        }
    }

    /// Continues without a node. Without an event manager nothing numbers triggers or ends events, so the run finishes.
    fn go_on_without(&mut self, now: Time, node: NodeId) {
        if node == self.config.event_manager && self.phase.is_building() {
            self.finish(now);
        }
        self.end_when_all_finished(now);
    }

    /// A node has its place in the run again, and nothing of what it had. Without a run it is a node that joins.
    fn rejoin(&mut self, now: Time, node: NodeId) {
        if !self.phase.is_building() {
            return self.join(now, node);
        }
        // Its end may not be known yet.
        self.lose(node, Loss::Gone);
        if node == self.config.event_manager {
            self.nodes.leave(node);
            return self.go_on_without(now, node);
        }
        self.lost_peers.forget(node);
        self.nodes.restore(node);
        self.events.push_back(Event::Back(node));
    }

    // ---- helpers

    fn order(&mut self, node: NodeId, order: Order) {
        if self.nodes.is_joined(node) {
            self.orders.push_back((node, order));
        }
    }

    /// Gives an order to the event manager, and to all nodes if front ends hear run control.
    fn order_data_taking(&mut self, order: Order) {
        match self.config.front_ends {
            true => self.order_all(order),
            false => self.order(self.config.event_manager, order),
        }
    }

    fn order_all(&mut self, order: Order) {
        self.orders.extend(self.nodes.joined().into_iter().map(|node| (node, order)));
    }

    /// Reports the state if it has changed.
    fn show_state(&mut self) {
        let state = self.state();
        if self.shown != state {
            self.shown = state;
            self.events.push_back(Event::State(state));
        }
    }
}
