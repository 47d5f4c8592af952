//! The bare network engine with single packets, for tests and benchmarks that compare it with other simulators.

use crate::{
    SimulateError,
    event::Event,
    net::{Net, Notice, byte_time, time_for},
    packet::Packet,
    queue::Queue,
    trace::Trace,
};
use evb_core::Time;
use evb_fabric::{EndpointId, Flow, Network};
use std::collections::VecDeque;

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it is handed to its network interface, behind those handed there before.
    pub at: Time,
    /// Where it comes from.
    pub from: EndpointId,
    /// Where it goes to.
    pub to: EndpointId,
    /// Bytes on the wire, at least 1.
    pub wire: u32,
}

/// What became of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the last byte of each packet arrived, in the order in which they were given; `None` for one that did not.
    pub delivered: Vec<Option<Time>>,
    /// Links taken by all packets.
    pub packet_hops: u64,
    /// Links each of which waits for the next, the last for the first; empty without a deadlock.
    pub deadlock: Vec<String>,
}

/// Sends packets over a network. The packets of one sender must be in the order of their times.
///
/// # Errors
/// When the network makes no sense.
pub fn send(network: Network, seed: u64, probes: &[Probe]) -> Result<Outcome, SimulateError> {
    let rate = network.config.nic.rate;
    let overhead = network.config.nic.overhead.0;
    let is_worm = matches!(network.config.flow, Flow::Wormhole { .. });
    let mut net = Net::new(network, seed, Trace::default())?;
    let mut queue: Queue<Event> = Queue::new(net.reach());
    let endpoints = net.network.endpoints.len();
    let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); endpoints];
    for (index, probe) in probes.iter().enumerate() {
        waiting[usize::from(probe.from.0)].push_back(index);
    }
    let mut delivered = vec![None; probes.len()];
    let mut next = |net: &mut Net, queue: &mut Queue<Event>, endpoint: usize| {
        let Some(index) = waiting[endpoint].pop_front() else { return };
        let probe = &probes[index];
        let pace = match rate {
            None => 0,
            Some(rate) if is_worm => byte_time(rate.0),
            Some(rate) => time_for(probe.wire.into(), rate.0),
        };
        let packet = Packet {
            variant: net.variant(probe.from, probe.to, 0),
            pace,
            ..Packet::new(probe.from, probe.to, index as u32, probe.wire, probe.wire)
        };
        net.send(queue, queue.now().max(probe.at.0) + overhead, packet);
    };
    (0..endpoints).for_each(|endpoint| next(&mut net, &mut queue, endpoint));
    loop {
        while let Some(event) = queue.pop_present() {
            let now = queue.now();
            match event {
                Event::Request(id) => net.request(&mut queue, now, id),
                Event::Wake { link } => net.wake(now, link),
                Event::Deliver(id) => {
                    let packet = net.packets.remove(id);
                    delivered[packet.message as usize] = Some(Time(now));
                }
                Event::Pause { lane } => net.pause(lane, true),
                Event::Unpause { lane } => net.pause(lane, false),
                Event::Drained { drain } => net.drained(&mut queue, now, drain),
                Event::Pick { endpoint } => next(&mut net, &mut queue, endpoint.into()),
                _ => unreachable!("only the network plans events here"),
            }
            take_notices(&mut net, &mut queue);
        }
        if net.is_dirty() {
            net.arbitrate(&mut queue);
            take_notices(&mut net, &mut queue);
        } else if !queue.advance() {
            break;
        }
    }
    let deadlock = if net.packets.len() > 0 { net.deadlock(queue.now()) } else { None };
    Ok(Outcome { delivered, packet_hops: net.packet_hops, deadlock: deadlock.unwrap_or_default().0 })
}

fn take_notices(net: &mut Net, queue: &mut Queue<Event>) {
    while let Some(notice) = net.notices.pop() {
        match notice {
            Notice::Sent { endpoint, at } => queue.push(at, Event::Pick { endpoint: endpoint.0 }),
            Notice::Lost(id) => drop(net.packets.remove(id)),
        }
    }
}
