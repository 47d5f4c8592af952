//! The protocol of a node as a machine: it gets frames and the time, and gives frames. It has no socket, clock or thread.
//!
//! After calls that may have made something to send, [`Machine::pump`] puts frames into a queue. The driver sends those of
//! [`Machine::frames`], and says how many were taken with [`Machine::sent`].

mod join;
mod messages;
#[cfg(test)]
mod tests;

use crate::{
    frame::{FrameKind, HEADER_BYTES, Header, Mac, ethernet, split},
    hello::HELLO_BYTES,
    keys::Keys,
    link::PeerLink,
    options::{EthernetOptions, LOOKS},
};
use evb_core::{NodeId, Span, Time};
use evb_transport::ChunkPool;
pub(crate) use join::JoinFailure;
use join::Joining;
use std::collections::VecDeque;

/// Frames of one peer before the next has its turn to send.
const SENDING_TURN: usize = 64;
/// Frames that wait for the driver, beyond which no more are made.
const MOST_QUEUED: usize = 1024;
/// Empty frames that are kept for the next ones.
const MOST_SPARE: usize = 1024;
/// Most frames that a peer may be ahead.
const MOST_WINDOW: usize = 512;
/// Fewest frames that a peer may be ahead.
const LEAST_WINDOW: usize = 4;

/// A frame that waits for the driver.
#[derive(Debug)]
enum Queued {
    Data { peer: u16, number: u64 },
    Other(Vec<u8>),
}

/// Counts of a node since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were dropped because they were harmed, cut, or of another version.
    pub harmed: u64,
    /// Frames that were dropped because they belong to another run, node or session.
    pub foreign: u64,
    /// Frames of data that were sent again.
    pub sent_again: u64,
    /// Frames of data that came again, or without credit.
    pub came_again: u64,
}

/// Properties of the interface of a node.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its address.
    pub mac: Mac,
    /// Most bytes behind an Ethernet header.
    pub mtu: usize,
    /// Frames that it keeps for this node until they are taken.
    pub frames: usize,
}

/// The protocol of one node.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) local: NodeId,
    options: EthernetOptions,
    port: Port,
    /// Messages have no heads, and are borrowed for a call.
    is_layer: bool,
    keys: Keys,
    run: u32,
    links: Vec<Option<Box<PeerLink>>>,
    joining: Vec<Option<Box<Joining>>>,
    queue: VecDeque<Queued>,
    /// Memory of frames, to be used again.
    pool: Vec<Vec<u8>>,
    chunks: ChunkPool,
    /// Peers with something to send, and with something to receive.
    busy: VecDeque<u16>,
    active: VecDeque<u16>,
    /// No timer ends before.
    timer: Time,
    next_look: Time,
    /// Queued messages may move again.
    pub(crate) moved: bool,
    counts: Counts,
}

impl Machine {
    pub(crate) fn new(local: NodeId, options: EthernetOptions, port: Port, is_layer: bool) -> Self {
        let (nodes, keys) = (usize::from(options.endpoint.nodes), Keys::new(&options.endpoint.token));
        Self {
            local,
            run: keys.run(),
            keys,
            links: (0..nodes).map(|_| None).collect(),
            joining: (0..nodes).map(|_| None).collect(),
            queue: VecDeque::new(),
            pool: Vec::new(),
            chunks: ChunkPool::default(),
            busy: VecDeque::new(),
            active: VecDeque::new(),
            timer: Time::ZERO,
            next_look: Time::ZERO,
            moved: false,
            counts: Counts::default(),
            options,
            port,
            is_layer,
        }
    }

    pub(crate) const fn options(&self) -> &EthernetOptions {
        &self.options
    }

    pub(crate) const fn port(&self) -> &Port {
        &self.port
    }

    /// Counts since the beginning.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.counts;
        for [sent, came] in self.links.iter().flatten().map(|link| link.repeated()) {
            (counts.sent_again, counts.came_again) = (counts.sent_again + sent, counts.came_again + came);
        }
        counts
    }

    fn payload(&self) -> usize {
        (self.port.mtu - HEADER_BYTES).min(usize::from(u16::MAX))
    }

    /// Frames that each peer may be ahead: all of them fit into the memory of the interface, with room for the rest.
    fn window(&self) -> u32 {
        let peers = usize::from(self.options.endpoint.nodes).saturating_sub(1).max(1);
        (self.port.frames * 3 / 4 / peers).clamp(LEAST_WINDOW, MOST_WINDOW) as u32
    }

    fn pace(&self) -> Span {
        let bits = 8 * (self.port.mtu as u64 + 38);
        Span(if self.options.megabits == 0 { 0 } else { bits * 1_000_000 / u64::from(self.options.megabits) })
    }

    fn link(&mut self, node: NodeId) -> Option<&mut PeerLink> {
        self.links.get_mut(node.index())?.as_deref_mut()
    }

    /// Takes a frame with its Ethernet header.
    #[inline]
    pub(crate) fn hear(&mut self, now: Time, frame: &[u8]) {
        let Some((mac, frame)) = split(frame) else { return self.counts.foreign += 1 };
        let Some((header, payload)) = Header::parse(frame) else { return self.counts.harmed += 1 };
        if header.run != self.run || header.to != self.local {
            return self.counts.foreign += 1;
        }
        if header.kind == FrameKind::Hello {
            return self.hear_hello(now, mac, &header, payload);
        }
        let index = header.from.index();
        let link = self.links.get_mut(index).and_then(Option::as_deref_mut);
        let Some(link) = link.filter(|link| link.inward() == header.session) else {
            return self.counts.foreign += 1;
        };
        if header.kind == FrameKind::Reset {
            link.fail("it has given this node up, or does not know it any more".into(), &mut self.pool);
        } else if link.is_over {
            self.queue.push_back(Queued::Other(link.reset()));
        } else {
            self.moved |= link.hear(now, &header, payload, &mut self.chunks, &mut self.pool);
        }
        self.note(now, index);
    }

    /// Puts a peer into the lists that it belongs to.
    #[inline]
    fn note(&mut self, now: Time, index: usize) {
        let Some(link) = self.links[index].as_deref_mut() else { return };
        if !std::mem::replace(&mut link.is_busy, true) {
            self.busy.push_back(index as u16);
        }
        if link.is_readable() && !std::mem::replace(&mut link.is_active, true) {
            self.active.push_back(index as u16);
        }
        self.timer = self.timer.min(link.next_time(now));
    }

    /// Handles timers that are over.
    #[inline]
    pub(crate) fn on_time(&mut self, now: Time) {
        if now >= self.timer {
            self.handle_timers(now);
        }
    }

    #[cold]
    fn handle_timers(&mut self, now: Time) {
        let looks = now >= self.next_look;
        if looks {
            self.next_look = Time(now.0 + Span::from(self.options.endpoint.peer_timeout / LOOKS).0);
        }
        self.timer = self.next_look;
        for index in 0..self.links.len() {
            self.ask_again(now, index);
            let Some(link) = self.links[index].as_deref_mut() else { continue };
            if looks && link.is_accepted {
                let lived = link.takes_messages();
                link.look(now, &mut self.pool);
                if lived && !link.takes_messages() {
                    self.queue.push_back(Queued::Other(link.reset()));
                }
            }
            self.timer = self.timer.min(link.on_time(now));
            self.note(now, index);
        }
    }

    /// The time at which [`on_time`](Machine::on_time) has something to do, or before.
    pub(crate) const fn next_time(&self) -> Time {
        self.timer
    }

    /// Bytes that wait for a peer.
    pub(crate) fn waiting_bytes(&mut self, to: NodeId) -> usize {
        self.link(to).map_or(0, |link| link.waiting_bytes())
    }

    /// Makes the frames that may be sent now.
    #[inline]
    pub(crate) fn pump(&mut self, now: Time) {
        if !self.busy.is_empty() {
            self.pump_busy(now);
        }
    }

    fn pump_busy(&mut self, now: Time) {
        for _ in 0..self.busy.len() {
            let Some(index) = self.busy.pop_front() else { return };
            while self.pump_one(now, index) {
                if !self.busy.is_empty() {
                    self.busy.push_back(index);
                    break;
                }
                if self.queue.len() >= MOST_QUEUED {
                    return self.busy.push_front(index);
                }
            }
        }
    }

    /// Makes frames of one peer for one turn. Returns true if there are more; if not, the peer is not busy any more.
    fn pump_one(&mut self, now: Time, index: u16) -> bool {
        let Some(link) = self.links[usize::from(index)].as_deref_mut() else { return false };
        if link.has_gap() {
            self.queue.extend(link.next_status(&mut self.pool).map(Queued::Other));
        }
        for _ in 0..SENDING_TURN {
            if let Some(number) = link.next_data(now, &mut self.pool) {
                self.queue.push_back(Queued::Data { peer: index, number });
                continue;
            }
            self.queue.extend(link.next_status(&mut self.pool).map(Queued::Other));
            link.is_busy = false;
            self.timer = self.timer.min(link.next_time(now));
            return false;
        }
        true
    }

    /// Number of frames that wait for the driver.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The frames that wait, the first first. Those that have arrived meanwhile are empty.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.queue.iter().map(|queued| match queued {
            Queued::Other(frame) => &frame[..],
            Queued::Data { peer, number } => {
                let link = self.links[usize::from(*peer)].as_deref();
                link.and_then(|link| link.frame(*number)).unwrap_or_default()
            }
        })
    }

    /// Removes the first `count` frames, which were taken.
    pub(crate) fn sent(&mut self, count: usize) {
        for queued in self.queue.drain(..count) {
            if let Queued::Other(frame) = queued {
                self.pool.push(frame);
            }
        }
        self.pool.truncate(MOST_SPARE);
    }

    /// Returns true if something can be received.
    pub(crate) fn is_readable(&self) -> bool {
        !self.active.is_empty()
    }

    /// Returns true if all messages are in frames that were sent once at least.
    pub(crate) fn is_sent(&self) -> bool {
        self.queue.is_empty() && self.links.iter().flatten().all(|link| link.is_sent())
    }

    /// Returns true if the peers have all messages, or are gone.
    pub(crate) fn is_settled(&self) -> bool {
        self.links.iter().flatten().all(|link| link.is_settled())
    }

    /// Says goodbye to all peers, behind the last message.
    pub(crate) fn say_goodbye(&mut self, now: Time) {
        for index in 0..self.links.len() {
            if let Some(link) = self.links[index].as_deref_mut() {
                link.say_goodbye();
                self.note(now, index);
            }
        }
    }

    /// Tells the peers that do not have everything that nothing more comes.
    pub(crate) fn leave(&mut self) {
        let unsettled = self.links.iter().flatten().filter(|link| !link.is_settled());
        self.queue.extend(unsettled.map(|link| Queued::Other(link.reset())));
    }

    /// A frame to everybody or a peer, of a hello.
    fn hello_frame(&self, to: NodeId, mac: Mac, hello: &[u8; HELLO_BYTES]) -> Vec<u8> {
        let mut frame = ethernet(mac, self.port.mac, self.options.priority);
        let begin = frame.len();
        frame.resize(begin + HEADER_BYTES, 0);
        frame.extend_from_slice(hello);
        let header = Header {
            run: self.run,
            to,
            from: self.local,
            length: HELLO_BYTES as u16,
            kind: FrameKind::Hello,
            asks: false,
            session: 0,
            number: 0,
            ack: 0,
            limit: 0,
        };
        header.seal(&mut frame[begin..]);
        frame
    }
}
