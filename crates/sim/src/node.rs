//! The nodes: machines, and what the driver adds to them.

use crate::{disk::Disk, message::Body};
use evb_core::{EventId, Machine, NodeId, NodeRange, SourceId, Span, Time, Transmit};
use evb_experiment::{FaultAction, Plan};
use evb_patterns::{Traffic, TrafficCommand, TrafficEvent};
use evb_protocol::{
    BuilderCommand, BuilderEvent, BuilderUnit, Built, EventManager, Filter, Fragment, FragmentStatus, ManagerCommand,
    ManagerEvent, Message as ProtocolMessage, ReadoutCommand, ReadoutEvent, ReadoutUnit, Recent, Timer,
};
use evb_sources::SizeModel;

/// Events of which is remembered that their fragment was lost.
const MOST_LOST: usize = 1 << 14;

/// A message that a machine wants to send.
pub(crate) struct Outgoing {
    pub(crate) to: NodeRange,
    pub(crate) body: Body,
    /// Payload that counts as throughput.
    pub(crate) payload: u64,
    /// It is held back for so long (a fault).
    pub(crate) delay: Span,
}

/// What a machine has to say beside messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    Manager(ManagerEvent),
    Traffic(TrafficEvent),
    /// A builder's disk has so much to do until then, the latest event included.
    Storing(Time),
}

/// One node.
pub(crate) struct Node {
    pub(crate) machine: Kind,
    /// The deadline for which a timeout is planned.
    pub(crate) timeout_at: Time,
    pub(crate) dead: bool,
    /// Faults brought about on purpose.
    harm: Vec<FaultAction>,
    /// Events whose fragment was lost once: what is sent again comes through.
    lost: Recent<EventId>,
    /// What decides after the first phase of an event.
    filter: Filter,
    /// The disk of a builder, when it is slow on purpose.
    disk: Option<Disk>,
    max_fragment: u32,
}

/// A machine of any kind.
pub(crate) enum Kind {
    Manager(Box<EventManager<()>>),
    Readout(Box<ReadoutUnit<()>>, SizeModel, SourceId),
    Builder(Box<BuilderUnit<()>>),
    Traffic(Box<Traffic>, Option<SizeModel>),
}

impl Node {
    pub(crate) fn new(machine: Kind, plan: &Plan, id: NodeId) -> Self {
        let faults = plan.faults.iter().filter(|fault| fault.node == id).map(|fault| fault.action);
        Self {
            machine,
            timeout_at: Time::MAX,
            dead: false,
            harm: faults.filter(|action| !matches!(action, FaultAction::Kill { .. })).collect(),
            lost: Recent::new(MOST_LOST),
            filter: plan.filter,
            disk: Disk::of(plan, id),
            max_fragment: u32::try_from(plan.building.max_fragment.0).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn handle_message(&mut self, now: Time, from: NodeId, body: Body) {
        match (&mut self.machine, body) {
            (Kind::Manager(machine), Body::Protocol(message)) => machine.handle_message(now, from, message),
            (Kind::Readout(machine, ..), Body::Protocol(message)) => machine.handle_message(now, from, message),
            (Kind::Builder(machine), Body::Protocol(message)) => machine.handle_message(now, from, message),
            (Kind::Traffic(machine, _), Body::Traffic(message)) => machine.handle_message(now, from, message),
            _ => unreachable!("machines of one kind do not talk to those of another"),
        }
    }

    /// Events that it has triggered; none when it is no event manager.
    pub(crate) fn triggered(&self) -> u64 {
        match &self.machine {
            Kind::Manager(machine) => machine.counts().triggered,
            _ => 0,
        }
    }

    /// Events that it has triggered and that have not ended; none when it is no event manager.
    pub(crate) fn open(&self) -> u64 {
        match &self.machine {
            Kind::Manager(machine) => machine.counts().open(),
            _ => 0,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        match &mut self.machine {
            Kind::Manager(machine) => machine.handle_timeout(now),
            Kind::Readout(machine, ..) => machine.handle_timeout(now),
            Kind::Builder(machine) => machine.handle_timeout(now),
            Kind::Traffic(machine, _) => machine.handle_timeout(now),
        }
    }

    pub(crate) fn command_manager(&mut self, now: Time, command: ManagerCommand) {
        if let Kind::Manager(machine) = &mut self.machine {
            machine.handle_command(now, command);
        }
    }

    /// A builder ends its events with what is there.
    pub(crate) fn cut(&mut self, now: Time) {
        if let Kind::Builder(machine) = &mut self.machine {
            machine.handle_command(now, BuilderCommand::Cut);
        }
    }

    pub(crate) fn command_traffic(&mut self, now: Time, command: TrafficCommand) {
        if let Kind::Traffic(machine, _) = &mut self.machine {
            machine.handle_command(now, command);
        }
    }

    /// The disk has stored an event.
    pub(crate) fn stored(&mut self, now: Time) {
        if let (Kind::Builder(machine), Some(built)) = (&mut self.machine, self.disk.as_mut().and_then(Disk::stored)) {
            machine.handle_command(now, BuilderCommand::Stored(built));
        }
    }

    /// Tells the machine that another node is gone.
    pub(crate) fn lose(&mut self, now: Time, node: NodeId) {
        match &mut self.machine {
            Kind::Manager(machine) => machine.handle_command(now, ManagerCommand::Lost(node)),
            Kind::Readout(machine, ..) => machine.handle_command(now, ReadoutCommand::Lost(node)),
            Kind::Builder(machine) => machine.handle_command(now, BuilderCommand::Lost(node)),
            Kind::Traffic(..) => {}
        }
    }

    /// Drains the machine: messages to send into `out`, all else into `told`. A readout unit keeps what is beyond `room`
    /// messages, and says so by true.
    pub(crate) fn drain(&mut self, now: Time, room: usize, out: &mut Vec<Outgoing>, told: &mut Vec<Told>) -> bool {
        match &mut self.machine {
            Kind::Manager(machine) => {
                while let Some(Transmit { to, message }) = machine.poll_transmit() {
                    out.push(control(to, message));
                }
                told.extend(std::iter::from_fn(|| machine.poll_event()).map(Told::Manager));
            }
            Kind::Readout(machine, sizes, source) => {
                let first = out.len();
                let holds_back = drain_readout(machine, sizes, *source, now, room, out);
                if !self.harm.is_empty() {
                    let fragments = out.split_off(first);
                    fragments.into_iter().for_each(|one| harm(&self.harm, &mut self.lost, self.max_fragment, one, out));
                }
                return holds_back;
            }
            Kind::Builder(machine) => {
                let mut store = |built: Built<()>| match self.disk.as_mut().filter(|disk| disk.keeps(&built)) {
                    Some(disk) => {
                        told.push(Told::Storing(disk.write(now, built)));
                        None
                    }
                    None => Some(built),
                };
                drain_builder(machine, &self.filter, &mut store, now, out);
            }
            Kind::Traffic(machine, sizes) => {
                while let Some(Transmit { to, message }) = machine.poll_transmit() {
                    let payload = match (message, sizes.as_mut()) {
                        (evb_patterns::TrafficMessage::Data { number, .. }, Some(sizes)) => {
                            u64::from(sizes.size(EventId(number)).unwrap_or(1).max(1))
                        }
                        _ => 0,
                    };
                    out.push(Outgoing { to, body: Body::Traffic(message), payload, delay: Span::ZERO });
                }
                told.extend(std::iter::from_fn(|| machine.poll_event()).map(Told::Traffic));
            }
        }
        false
    }

    pub(crate) fn deadline(&self) -> Option<(Time, Timer)> {
        match &self.machine {
            Kind::Manager(machine) => machine.poll_timeout(),
            Kind::Readout(machine, ..) => machine.poll_timeout(),
            Kind::Builder(machine) => machine.poll_timeout(),
            Kind::Traffic(..) => None,
        }
    }
}

fn control(to: NodeRange, message: ProtocolMessage<()>) -> Outgoing {
    Outgoing { to, body: Body::Protocol(message), payload: 0, delay: Span::ZERO }
}

fn drain_readout(
    machine: &mut ReadoutUnit<()>,
    sizes: &mut SizeModel,
    source: SourceId,
    now: Time,
    room: usize,
    out: &mut Vec<Outgoing>,
) -> bool {
    let end = out.len().saturating_add(room);
    loop {
        let mut any = false;
        while let Some(event) = machine.poll_event() {
            if let ReadoutEvent::Read { event, position } = event {
                any = true;
                let fragment = fragment(source, event, sizes.size(EventId(position)));
                machine.handle_command(now, ReadoutCommand::Fragment(fragment));
            }
        }
        while out.len() < end {
            let Some(Transmit { to, message }) = machine.poll_transmit() else { break };
            any = true;
            let payload = match &message {
                ProtocolMessage::Fragment(fragment) => u64::from(fragment.length),
                ProtocolMessage::Packet(fragments) => fragments.iter().map(|one| u64::from(one.length)).sum(),
                _ => 0,
            };
            out.push(Outgoing { to, body: Body::Protocol(message), payload, delay: Span::ZERO });
        }
        if !any {
            return out.len() >= end;
        }
    }
}

/// The fragment of an event, without bytes.
fn fragment(source: SourceId, event: EventId, size: Option<u32>) -> Fragment<()> {
    let status = if size.is_some() { FragmentStatus::Good } else { FragmentStatus::Missing };
    Fragment { event, source, length: size.unwrap_or(0), checksum: 0, mark: None, status, payload: () }
}

/// A decision takes no time, and an event that `store` gives back is stored: a simulated builder has no filter farm, and no
/// disk unless it is slow on purpose.
fn drain_builder(
    machine: &mut BuilderUnit<()>,
    filter: &Filter,
    store: &mut dyn FnMut(Built<()>) -> Option<Built<()>>,
    now: Time,
    out: &mut Vec<Outgoing>,
) {
    loop {
        let mut any = false;
        while let Some(event) = machine.poll_event() {
            let answer = match event {
                BuilderEvent::Built(built) => match store(built) {
                    Some(built) => BuilderCommand::Stored(built),
                    None => continue,
                },
                BuilderEvent::Decide { event, complete } => {
                    BuilderCommand::Decided { event, accepted: filter.accepts(event, complete) }
                }
                BuilderEvent::Orphaned | BuilderEvent::Stands | BuilderEvent::Fenced => continue,
            };
            any = true;
            machine.handle_command(now, answer);
        }
        while let Some(Transmit { to, message }) = machine.poll_transmit() {
            any = true;
            out.push(control(to, message));
        }
        if !any {
            return;
        }
    }
}

/// What the faults of a readout unit do to what it sends.
fn harm(
    actions: &[FaultAction],
    lost: &mut Recent<EventId>,
    max_fragment: u32,
    one: Outgoing,
    out: &mut Vec<Outgoing>,
) {
    let fragments = match one.body {
        Body::Protocol(ProtocolMessage::Fragment(fragment)) => vec![fragment],
        Body::Protocol(ProtocolMessage::Packet(fragments)) => fragments,
        _ => return out.push(one),
    };
    for mut fragment in fragments {
        let (mut copies, mut delay) = (1, Span::ZERO);
        for action in actions {
            let hits = |one_in: u64| fragment.event.0.is_multiple_of(one_in);
            match *action {
                FaultAction::Corrupt { one_in } if hits(one_in) => fragment.status = FragmentStatus::Corrupted,
                FaultAction::Oversize { one_in } if hits(one_in) => {
                    (fragment.length, fragment.status) = (max_fragment.saturating_add(1), FragmentStatus::Oversized);
                }
                FaultAction::Duplicate { one_in } if hits(one_in) => copies = 2,
                FaultAction::Lose { one_in } if hits(one_in) && lost.insert(fragment.event) => copies = 0,
                FaultAction::Delay { one_in, by } if hits(one_in) => delay = by,
                _ => {}
            }
        }
        for _ in 0..copies {
            let payload = u64::from(fragment.length);
            let body = Body::Protocol(ProtocolMessage::Fragment(fragment.clone()));
            out.push(Outgoing { to: one.to, body, payload, delay });
        }
    }
}
