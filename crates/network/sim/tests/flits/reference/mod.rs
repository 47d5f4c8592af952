//! A network simulator that moves single bytes by the rules of `docs/reference/networks/model.md`: slow, simple, and
//! written from the text alone, so that its errors differ from those of the engine.
//!
//! An event is a byte being sent, a byte being there, a sender learning of room: nothing is computed ahead. When
//! packets never stop on a link (all but wormhole), the first and the last byte represent the others, and are planned
//! when the link is given away.

mod links;
mod moves;

use evb_core::Time;
use evb_fabric::{Flow, Network, Routes, WhenFull};
use evb_sim::testing::Probe;
use links::{Buffer, Input, Wire};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Picoseconds in which one byte passes at one bit per second.
const BYTE: u128 = 8_000_000_000_000;

/// The fate of the packets, and the special cases that they met with.
#[derive(Debug, Default)]
pub(crate) struct ReferenceOutcome {
    /// Time at which the last byte of each packet arrived.
    pub(crate) delivered: Vec<Option<Time>>,
    /// Links given away.
    pub(crate) hops: u64,
    /// Packets dropped.
    pub(crate) lost: u64,
    /// Packets that were still under way when nothing moved any more.
    pub(crate) blocked: u64,
    /// Packets that were not given a link at once.
    pub(crate) waits: u64,
    /// Bytes of worms that waited for room.
    pub(crate) stalls: u64,
    /// Most links on which one worm stood at a time.
    pub(crate) stretch: usize,
    /// Number of times that a sender was asked to pause.
    pub(crate) pauses: u64,
    /// Packets dropped because they found no headroom.
    pub(crate) lost_in_pause: u64,
}

/// Sends the packets, as [`evb_sim::testing::send`] does.
pub(crate) fn send(network: &Network, seed: u64, probes: &[Probe]) -> ReferenceOutcome {
    let mut world = World::new(network, seed, probes);
    for endpoint in 0..network.endpoints.len() {
        world.take(endpoint);
    }
    while world.step() {}
    let expected = &mut world.expected;
    expected.blocked = probes.len() as u64 - expected.lost - expected.delivered.iter().flatten().count() as u64;
    world.expected
}

/// An event of a packet or a link. Hops of a packet count from 0, the link into the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The packet requests the link of this hop.
    Ask { packet: usize },
    /// A byte of a worm has been sent.
    ByteSent { packet: usize, hop: usize },
    /// A byte of a worm is there.
    ByteThere { packet: usize, hop: usize },
    /// The sender of the hop learns that one more byte has left the buffer ahead.
    ByteKnown { packet: usize, hop: usize },
    /// The packet has been read from the buffer, and the next one comes to its front.
    HasBeenRead { link: usize, channel: usize, packet: usize },
    /// The first byte is there.
    HeadThere { packet: usize, hop: usize },
    /// The last byte has been sent.
    TailSent { packet: usize, hop: usize },
    /// The last byte is there.
    TailThere { packet: usize, hop: usize },
    /// The sender of the link learns of room in the buffer.
    Room { link: usize, channel: usize, amount: u64 },
    /// The sender of the link obeys.
    Pause { link: usize, on: bool },
}

/// A packet, and how far it is.
struct Packet {
    probe: Probe,
    /// The links given to it.
    route: Vec<Hop>,
    /// Time at which it asked for the next.
    asked: u64,
    /// Time at which its last byte is or will be at the end of the link that it last took (all but wormhole).
    tail_at: u64,
}

/// One link of a packet's route. The counts of bytes are those of a worm.
struct Hop {
    link: usize,
    channel: usize,
    /// True when the first byte is at the other end.
    head_there: bool,
    /// Time at which it came.
    head_at: u64,
    sending: bool,
    sent: u64,
    there: u64,
    /// Bytes that the sender knows to have left the buffer ahead.
    known: u64,
}

struct World<'n> {
    network: &'n Network,
    routes: Routes,
    seed: u64,
    now: u64,
    serial: u64,
    plan: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    packets: Vec<Packet>,
    /// For each port of a host the packets that it has not taken.
    to_send: Vec<VecDeque<usize>>,
    wires: Vec<Wire>,
    /// The input at the end of each link.
    inputs: Vec<Input>,
    /// The buffer behind each link, for each channel.
    buffers: Vec<Vec<Buffer>>,
    expected: ReferenceOutcome,
    /// For each input, and its channel, the number of its last grant.
    recent: HashMap<(usize, usize), u64>,
    /// Number of grants so far.
    grants: u64,
}

impl<'n> World<'n> {
    fn new(network: &'n Network, seed: u64, probes: &[Probe]) -> Self {
        let mut to_send = vec![VecDeque::new(); network.endpoints.len()];
        for (place, probe) in probes.iter().enumerate() {
            to_send[usize::from(probe.from.0)].push_back(place);
        }
        let packet = |&probe: &Probe| Packet { probe, route: Vec::new(), asked: 0, tail_at: 0 };
        let channels = usize::from(network.config.flow.virtual_channels());
        Self {
            network,
            recent: HashMap::new(),
            grants: 0,
            routes: Routes::find(network, &|_| true),
            seed,
            now: 0,
            serial: 0,
            plan: BinaryHeap::new(),
            packets: probes.iter().map(packet).collect(),
            to_send,
            inputs: vec![Input::default(); network.links.len()],
            wires: network.links.iter().map(|_| Wire::default()).collect(),
            buffers: network.links.iter().map(|_| (0..channels).map(|_| Buffer::default()).collect()).collect(),
            expected: ReferenceOutcome { delivered: vec![None; probes.len()], ..ReferenceOutcome::default() },
        }
    }

    /// Everything at the next time; `false` if there is none.
    fn step(&mut self) -> bool {
        let Some(&Reverse((next, ..))) = self.plan.peek() else { return false };
        self.now = next;
        loop {
            while let Some(&Reverse((at, _, happening))) = self.plan.peek()
                && at == self.now
            {
                self.plan.pop();
                self.happen(happening);
            }
            if !self.give_links_away() {
                return true;
            }
        }
    }

    fn plan(&mut self, after: u64, happening: Happening) {
        self.serial += 1;
        self.plan.push(Reverse((self.now + after, self.serial, happening)));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ask { packet } => self.ask(packet),
            Happening::ByteSent { packet, hop } => self.byte_sent(packet, hop),
            Happening::ByteThere { packet, hop } => self.byte_there(packet, hop),
            Happening::ByteKnown { packet, hop } => self.byte_known(packet, hop),
            Happening::HasBeenRead { link, channel, packet } => self.bring_next(link, channel, packet),
            Happening::HeadThere { packet, hop } => self.head_there(packet, hop),
            Happening::TailSent { packet, hop } => self.tail_sent(packet, hop),
            Happening::TailThere { packet, hop } => self.tail_there(packet, hop),
            Happening::Room { link, channel, amount } => self.buffers[link][channel].taken -= amount,
            Happening::Pause { link, on } => self.wires[link].paused = on,
        }
    }

    /// The interface takes its next packet: not before there is one, and then needs its overhead.
    fn take(&mut self, endpoint: usize) {
        let Some(packet) = self.to_send[endpoint].pop_front() else { return };
        let wait = self.packets[packet].probe.at.0.saturating_sub(self.now);
        self.plan(wait + self.network.config.nic.overhead.0, Happening::Ask { packet });
    }

    fn slack(&self) -> Option<(u64, u64)> {
        match self.network.config.flow {
            Flow::Wormhole { slack, reaction } => Some((slack.0, reaction.0)),
            Flow::CutThrough { .. } | Flow::StoreAndForward { .. } => None,
        }
    }

    /// Bytes of a store-and-forward switch, the behaviour when they are full, and the reaction.
    fn store(&self) -> Option<(u64, WhenFull, u64)> {
        match self.network.config.flow {
            Flow::StoreAndForward { queue, full, reaction, .. } => Some((queue.0, full, reaction.0)),
            Flow::Wormhole { .. } | Flow::CutThrough { .. } => None,
        }
    }
}

/// The time for a number of bytes at a rate, rounded up.
fn time_for(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * BYTE).div_ceil(u128::from(rate)) as u64
}

/// The time of a byte of a worm, rounded to the nearest picosecond.
fn byte_time(rate: u64) -> u64 {
    let rate = u128::from(rate);
    ((2 * BYTE + rate) / (2 * rate)) as u64
}
