//! Entry points of tests and benchmarks: the bare network engine with single packets, and plans packet by packet or in
//! partitions.

use crate::{
    Packets, SimulateError,
    event::Event,
    message::MessageId,
    net::{Net, NetEffect},
    packet::Packet,
    parallel,
    partition_border::PartitionBorder,
    trace::Trace,
};
use evb_core::Time;
use evb_experiment::Plan;
use evb_fabric::{EndpointId, Network};
use evb_record::Record;
use std::{collections::VecDeque, num::NonZeroUsize};

/// Simulates a plan packet by packet, without trains. The record is the same as
/// that of [`simulate`](crate::simulate).
///
/// # Errors
/// As `simulate`.
pub fn simulate_one_by_one(plan: &Plan) -> Result<Record, SimulateError> {
    crate::run(plan, NonZeroUsize::MIN, None, &mut |_| true, Packets::OneByOne)
}

/// Simulates a plan in partitions, at most `most`. Returns `None` if it has no partitions, or if they gave up.
///
/// # Errors
/// As `simulate`.
pub fn simulate_partitioned(plan: &Plan, most: NonZeroUsize) -> Result<Option<Record>, SimulateError> {
    let plan = crate::simulated(plan)?;
    let Some((network, partitioning)) = parallel::divide(&plan, most)? else { return Ok(None) };
    let simulation = parallel::in_partitions(&plan, &network, &partitioning, &mut |_| true)?;
    Ok(simulation.map(|simulation| crate::statistics::record(&simulation, 0.0)))
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Time at which it is handed to its network interface, behind those handed there before.
    pub at: Time,
    /// Sender of the packet.
    pub from: EndpointId,
    /// Receiver of the packet.
    pub to: EndpointId,
    /// Bytes on the wire, at least 1.
    pub wire: u32,
}

/// The fate of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Time at which the last byte of each packet arrived, in the order of the packets; `None` for one that did not.
    pub delivered: Vec<Option<Time>>,
    /// Links taken by all packets.
    pub packet_hops: u64,
    /// Links each of which waits for the next, the last for the first; empty without a deadlock.
    pub deadlock: Vec<String>,
}

/// Sends packets over a network. The packets of one sender must be in the order of their times.
///
/// # Errors
/// If the network is invalid.
pub fn send(network: Network, seed: u64, probes: &[Probe]) -> Result<Outcome, SimulateError> {
    let net = Net::new(network, seed, Trace::default(), PartitionBorder::default())?;
    let mut waiting = vec![VecDeque::new(); net.network.endpoints.len()];
    for (index, probe) in probes.iter().enumerate() {
        waiting[usize::from(probe.from.0)].push_back(index);
    }
    let mut run = Run { net, probes, waiting, delivered: vec![None; probes.len()] };
    run.finish();
    let Run { mut net, delivered, .. } = run;
    let deadlock = if net.packets.len() > 0 { net.deadlock() } else { None };
    let deadlock = deadlock.map(|(links, _)| links).unwrap_or_default();
    Ok(Outcome { delivered, packet_hops: net.packet_hops(), deadlock })
}

struct Run<'a> {
    net: Net,
    probes: &'a [Probe],
    /// The probes that each endpoint has still to send.
    waiting: Vec<VecDeque<usize>>,
    delivered: Vec<Option<Time>>,
}

impl Run<'_> {
    fn finish(&mut self) {
        (0..self.waiting.len()).for_each(|endpoint| self.send_next(endpoint));
        loop {
            while let Some(event) = self.net.queue.pop_present() {
                self.happen(event);
                self.take_effects();
            }
            if self.net.is_dirty() {
                self.net.arbitrate();
                self.take_effects();
            } else if !self.net.queue.advance() {
                break;
            }
        }
    }

    fn send_next(&mut self, endpoint: usize) {
        let Some(index) = self.waiting[endpoint].pop_front() else { return };
        let Probe { at, from, to, wire } = self.probes[index];
        let variant = self.net.variant(from, to, 0);
        let packet = Packet { message: MessageId(index as u32), payload: wire, wire, variant, ..Packet::new(from, to) };
        let ready = self.net.queue.now().max(at) + self.net.network.config.nic.overhead;
        self.net.send(ready, packet);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Net(event) => self.net.handle(event),
            Event::Deliver(id) => {
                let packet = self.net.packets.remove(id);
                self.delivered[packet.message.0 as usize] = Some(self.net.queue.now());
            }
            Event::Pick { endpoint } => self.send_next(endpoint.into()),
            _ => unreachable!("only the network plans events here"),
        }
    }

    fn take_effects(&mut self) {
        while let Some(effect) = self.net.effects.pop() {
            match effect {
                NetEffect::Sent { endpoint, at } => self.net.queue.push(at, Event::Pick { endpoint: endpoint.0 }),
                NetEffect::Lost(id) => drop(self.net.packets.remove(id)),
                NetEffect::Uncut { .. } => unreachable!("packets are sent one by one here"),
                NetEffect::Rerouted => {}
            }
        }
    }
}
