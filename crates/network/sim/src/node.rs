//! The nodes: units of an event builder or machines of a traffic pattern, drained in virtual time.

use crate::{input::Input, message::Body, storage::Storage};
use evb_core::{EventId, Machine, NodeId, NodeRange, Span, Time, Transmit};
use evb_patterns::{Traffic, TrafficCommand, TrafficEvent, TrafficMessage};
use evb_protocol::{BuilderCommand, ManagerEvent, Message as ProtocolMessage, ReadoutCommand};
use evb_sources::SizeModel;
use evb_unit::{BuilderUnit, EventManager, ReadLimits, ReadoutUnit, Report, SimulatedPayload};

/// A message that a machine wants to send.
pub(crate) struct Outgoing {
    pub(crate) to: NodeRange,
    pub(crate) body: Body,
    /// Payload that counts as throughput.
    pub(crate) payload: u64,
    /// Time for which a fault holds the message back.
    pub(crate) delay: Span,
}

/// An output of a node beside messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    Manager(ManagerEvent),
    Traffic(TrafficEvent),
    Background(TrafficEvent),
    /// Time at which a builder's disk will have stored all its events, the latest included.
    Storing(Time),
    /// Time at which a filter unit will have decided.
    Filtering(Time),
}

/// One node.
pub(crate) struct Node {
    pub(crate) unit: NodeUnit,
    /// The deadline for which a timeout is planned.
    pub(crate) timeout_at: Time,
    pub(crate) dead: bool,
}

/// A unit of any kind.
pub(crate) enum NodeUnit {
    Manager(Box<EventManager<SimulatedPayload>>),
    Readout(Box<ReadoutUnit<SimulatedPayload, Input>>),
    Builder(Box<BuilderUnit<SimulatedPayload, Storage>>),
    Traffic(Box<Traffic>, Option<SizeModel>),
    /// A node of background traffic.
    Background(Box<Traffic>, Option<SizeModel>),
    /// A unit in another partition of the network.
    Remote,
}

impl Node {
    pub(crate) fn new(unit: NodeUnit) -> Self {
        Self { unit, timeout_at: Time::MAX, dead: false }
    }

    pub(crate) fn handle_message(&mut self, now: Time, from: NodeId, body: Body) {
        match (&mut self.unit, body) {
            (NodeUnit::Manager(unit), Body::Protocol(message)) => unit.handle_message(now, from, message),
            (NodeUnit::Readout(unit), Body::Protocol(message)) => unit.handle_message(now, from, message),
            (NodeUnit::Builder(unit), Body::Protocol(message)) => unit.handle_message(now, from, message),
            (NodeUnit::Traffic(machine, _), Body::Traffic(message))
            | (NodeUnit::Background(machine, _), Body::Background(message)) => {
                machine.handle_message(now, from, message)
            }
            _ => unreachable!("machines of one kind do not talk to those of another"),
        }
    }

    /// The event manager, if it is one.
    pub(crate) fn manager(&mut self) -> Option<&mut EventManager<SimulatedPayload>> {
        match &mut self.unit {
            NodeUnit::Manager(unit) => Some(unit),
            _ => None,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        match &mut self.unit {
            NodeUnit::Manager(unit) => unit.handle_timeout(now),
            NodeUnit::Readout(unit) => unit.machine.handle_timeout(now),
            NodeUnit::Builder(unit) => unit.handle_timeout(now),
            NodeUnit::Traffic(machine, _) | NodeUnit::Background(machine, _) => machine.handle_timeout(now),
            NodeUnit::Remote => {}
        }
    }

    /// Makes a builder end its events with the fragments that are there.
    pub(crate) fn cut(&mut self, now: Time) {
        if let NodeUnit::Builder(unit) = &mut self.unit {
            unit.machine.handle_command(now, BuilderCommand::Cut);
        }
    }

    pub(crate) fn command_traffic(&mut self, now: Time, command: TrafficCommand) {
        if let NodeUnit::Traffic(machine, _) = &mut self.unit {
            machine.handle_command(now, command);
        }
    }

    pub(crate) fn command_background(&mut self, now: Time, command: TrafficCommand) {
        if let NodeUnit::Background(machine, _) = &mut self.unit {
            machine.handle_command(now, command);
        }
    }

    /// The storage has stored an event.
    pub(crate) fn stored(&mut self, now: Time) {
        if let NodeUnit::Builder(unit) = &mut self.unit
            && let Some(built) = unit.storage.stored()
        {
            unit.stored(now, built);
        }
    }

    /// The storage, if it is a builder.
    pub(crate) fn storage(&mut self) -> Option<&mut Storage> {
        match &mut self.unit {
            NodeUnit::Builder(unit) => Some(&mut unit.storage),
            _ => None,
        }
    }

    /// A filter unit has decided.
    pub(crate) fn filtered(&mut self, now: Time) {
        if let NodeUnit::Builder(unit) = &mut self.unit
            && let Some(answer) = unit.storage.filter.answer()
        {
            unit.answer(now, answer);
        }
    }

    /// Reports to the machine that another node is lost.
    pub(crate) fn lose(&mut self, now: Time, node: NodeId) {
        match &mut self.unit {
            NodeUnit::Manager(unit) => unit.lose(now, node),
            NodeUnit::Readout(unit) => unit.machine.handle_command(now, ReadoutCommand::Lost(node)),
            NodeUnit::Builder(unit) => unit.lose(now, node),
            NodeUnit::Traffic(..) | NodeUnit::Background(..) | NodeUnit::Remote => {}
        }
    }

    /// Drains the machine: messages to send into `out`, all else into `outputs`. A readout unit sends at most `room`
    /// messages; the result is true if it may keep more.
    pub(crate) fn drain(&mut self, now: Time, room: usize, out: &mut Vec<Outgoing>, outputs: &mut Vec<Output>) -> bool {
        match &mut self.unit {
            NodeUnit::Manager(unit) => {
                while let Some(transmit) = unit.poll_transmit() {
                    out.push(control(transmit));
                }
                while let Some(event) = unit.poll_event() {
                    outputs.push(Output::Manager(event));
                }
            }
            NodeUnit::Readout(unit) => return drain_readout(unit, now, room, out),
            NodeUnit::Builder(unit) => {
                drain_builder(unit, now, out);
                outputs.extend(unit.storage.begun.drain(..).map(Output::Storing));
                outputs.extend(unit.storage.filter.begun.drain(..).map(Output::Filtering));
            }
            NodeUnit::Traffic(machine, sizes) => {
                drain_traffic(machine, sizes.as_mut(), Body::Traffic, out);
                outputs.extend(std::iter::from_fn(|| machine.poll_event()).map(Output::Traffic));
            }
            NodeUnit::Background(machine, sizes) => {
                drain_traffic(machine, sizes.as_mut(), Body::Background, out);
                outputs.extend(std::iter::from_fn(|| machine.poll_event()).map(Output::Background));
            }
            NodeUnit::Remote => {}
        }
        false
    }

    /// Drains the machine within a turn: as [`drain`](Self::drain) does, but a readout unit reads once, within limits.
    /// Returns true if it has read something.
    pub(crate) fn drain_within(
        &mut self,
        now: Time,
        limits: ReadLimits,
        out: &mut Vec<Outgoing>,
        outputs: &mut Vec<Output>,
    ) -> bool {
        match &mut self.unit {
            NodeUnit::Readout(unit) => {
                let Ok(has_read) = unit.read(now, limits);
                send(unit, usize::MAX, out);
                has_read
            }
            _ => {
                self.drain(now, usize::MAX, out, outputs);
                false
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        let timer = match &self.unit {
            NodeUnit::Manager(unit) => return unit.deadline(),
            NodeUnit::Readout(unit) => unit.machine.poll_timeout(),
            NodeUnit::Builder(unit) => return unit.deadline(),
            NodeUnit::Traffic(..) | NodeUnit::Background(..) | NodeUnit::Remote => None,
        };
        timer.map(|(at, _)| at)
    }

    /// The counts of a unit of an event builder.
    pub(crate) fn report(&self, now: Time) -> Option<Report> {
        Some(match &self.unit {
            NodeUnit::Manager(unit) => Report::Manager(unit.report(now)),
            NodeUnit::Readout(unit) => Report::Readout(unit.report(now).into()),
            NodeUnit::Builder(unit) => Report::Builder(unit.report(now)),
            NodeUnit::Traffic(..) | NodeUnit::Background(..) | NodeUnit::Remote => return None,
        })
    }
}

fn drain_traffic(
    machine: &mut Traffic,
    mut sizes: Option<&mut SizeModel>,
    body: fn(TrafficMessage) -> Body,
    out: &mut Vec<Outgoing>,
) {
    while let Some(Transmit { to, message }) = machine.poll_transmit() {
        let payload = match (message, sizes.as_mut()) {
            (TrafficMessage::Data { number, .. }, Some(sizes)) => {
                u64::from(sizes.size(EventId(number)).unwrap_or(1).max(1))
            }
            _ => 0,
        };
        out.push(Outgoing { to, body: body(message), payload, delay: Span::ZERO });
    }
}

fn control(Transmit { to, message }: Transmit<ProtocolMessage<SimulatedPayload>>) -> Outgoing {
    Outgoing { to, body: Body::Protocol(message), payload: 0, delay: Span::ZERO }
}

/// Drains a readout unit; reading takes no time. Returns true if there may be more messages than room.
fn drain_readout(
    unit: &mut ReadoutUnit<SimulatedPayload, Input>,
    now: Time,
    room: usize,
    out: &mut Vec<Outgoing>,
) -> bool {
    let mut left = room;
    loop {
        let Ok(has_read) = unit.read(now, ReadLimits::NONE);
        let sent = send(unit, left, out);
        left -= sent;
        if !has_read && sent == 0 {
            return left == 0;
        }
    }
}

/// Takes at most `room` messages of a readout unit; returns their number.
fn send(unit: &mut ReadoutUnit<SimulatedPayload, Input>, room: usize, out: &mut Vec<Outgoing>) -> usize {
    unit.transmit(room, |Transmit { to, message }, delay| {
        let payload = match &message {
            ProtocolMessage::Fragment(fragment) => u64::from(fragment.length),
            ProtocolMessage::Packet(fragments) => fragments.iter().map(|one| u64::from(one.length)).sum(),
            _ => 0,
        };
        out.push(Outgoing { to, body: Body::Protocol(message), payload, delay });
    })
}

fn drain_builder(unit: &mut BuilderUnit<SimulatedPayload, Storage>, now: Time, out: &mut Vec<Outgoing>) {
    loop {
        let mut moved = unit.handle_events(now);
        while let Some(transmit) = unit.poll_transmit() {
            moved = true;
            out.push(control(transmit));
        }
        if !moved {
            return;
        }
    }
}
