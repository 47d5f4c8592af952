//! Counts of each link.

use crate::packet::Packet;
use evb_core::{Span, Time};
use evb_fabric::LinkId;
use std::ops::{Index, IndexMut};

/// The counts of a link since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Those of background traffic.
    pub(crate) background: u64,
    /// Time in which bytes were moved.
    pub(crate) busy: Span,
    /// Time in which a packet had the link.
    pub(crate) held: Span,
    /// Time that packets waited for the link, added up over packets.
    pub(crate) waited: Span,
    /// Most bytes that waited at once, or (cut-through) that lay in one buffer behind the link.
    pub(crate) most_bytes: u64,
    /// Packets dropped here because the queue was full.
    pub(crate) dropped: u64,
    /// Bytes of the packets that wait now (store and forward, iSLIP, routes over other groups, flowlets).
    pub(crate) queued: u64,
    /// Packets that wait now (store and forward, iSLIP).
    pub(crate) waiting: u32,
    /// Most packets that waited at once.
    pub(crate) most_waiting: u32,
    /// Packets that found a long queue here and were marked.
    pub(crate) marked: u64,
    /// Packets that were cut to their headers here because the queue was full.
    pub(crate) trimmed: u64,
    /// Number of pauses that the receiver asked for.
    pub(crate) pauses: u32,
    /// Most bytes in the headroom of the receiver.
    pub(crate) most_headroom: u64,
    /// Packets that came during a pause and found no headroom at the receiver.
    pub(crate) ingress_dropped: u64,
    /// Packets dropped by the watchdog of the link: they were for it, or came over the other direction of its cable.
    pub(crate) watchdog_dropped: u64,
    /// Number of times that its watchdog acted.
    pub(crate) storms: u32,
    /// The chain of pauses that the last one of this link's receiver followed from, with itself.
    pub(crate) pause_chain: u16,
    /// The longest one.
    pub(crate) longest_pause_chain: u16,
    /// Time in which the sender obeyed a pause, but for the present one.
    paused: Span,
    /// Begin of the present pause.
    paused_since: Option<Time>,
}

impl LinkCounts {
    /// The sender obeys a pause from now on, or none.
    pub(super) fn note_pause(&mut self, now: Time, is_paused: bool) {
        self.paused = self.paused_until(now);
        self.paused_since = is_paused.then_some(now);
    }

    /// The pause of the receiver follows from others.
    pub(super) fn note_chain(&mut self, chain: u16) {
        self.pause_chain = chain;
        self.longest_pause_chain = chain.max(self.longest_pause_chain);
    }

    /// Time until `end` in which the sender obeyed a pause.
    pub(crate) fn paused_until(&self, end: Time) -> Span {
        Span(self.paused.0 + self.paused_since.map_or(0, |since| end.since(since).0))
    }
}

/// The counts of all links.
pub(super) struct Counts {
    links: Vec<LinkCounts>,
    /// Links taken by all packets, from the start.
    pub(super) packet_hops: u64,
    /// Start of the measurement; time spent before it does not count.
    from: Time,
}

impl Counts {
    pub(super) fn new(links: usize) -> Self {
        Self { links: vec![LinkCounts::default(); links], packet_hops: 0, from: Time::ZERO }
    }

    /// Clears the counts.
    pub(super) fn begin(&mut self, now: Time) {
        self.from = now;
        for counts in &mut self.links {
            // Waiting packets continue to wait, and pauses go on.
            *counts = LinkCounts {
                queued: counts.queued,
                waiting: counts.waiting,
                pause_chain: counts.pause_chain,
                paused_since: counts.paused_since.map(|_| now),
                ..LinkCounts::default()
            };
        }
    }

    /// The counts in the order of the links.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LinkCounts> + Clone {
        self.links.iter()
    }

    /// Takes over the counts of some links, and all hops, of another part of the network.
    pub(super) fn take_over(&mut self, other: &Self, is_of_other: impl Fn(LinkId) -> bool) {
        self.packet_hops += other.packet_hops;
        for (link, counts) in (0..).map(LinkId).zip(&mut self.links).filter(|(link, _)| is_of_other(*link)) {
            *counts = other[link];
        }
    }

    /// A packet gets a link now, and takes `queued` bytes out of its queue.
    #[inline]
    pub(super) fn grant(&mut self, now: Time, link: LinkId, packet: &Packet, queued: u64) {
        self.packet_hops += 1;
        let since = packet.since.max(self.from);
        let (counts, wire) = (&mut self[link], u64::from(packet.wire));
        counts.packets += 1;
        counts.bytes += wire;
        counts.background += if packet.load.is_background() { wire } else { 0 };
        counts.waited.0 += now.since(since).0;
        counts.queued = counts.queued.saturating_sub(queued);
    }

    /// Packets of a train have taken a link. None of them waited, and each leaves it after `pace`.
    pub(super) fn grant_all(&mut self, link: LinkId, packets: u32, wire: u32, pace: Span) {
        let count = u64::from(packets);
        self.packet_hops += count;
        let counts = &mut self[link];
        counts.packets += count;
        counts.bytes += count * u64::from(wire);
        counts.busy.0 += count * pace.0;
        counts.held.0 += count * pace.0;
        counts.most_waiting = counts.most_waiting.max(1);
    }

    /// A packet leaves a link at `until`, on which its bytes took `busy` to move.
    #[inline]
    pub(super) fn leave(&mut self, link: LinkId, busy: Span, since: Time, until: Time) {
        let held = until.since(since.max(self.from));
        let counts = &mut self[link];
        counts.busy.0 += busy.min(held).0;
        counts.held.0 += held.0;
    }

    /// Notes the number of bytes that wait for a link, or lie behind it.
    #[inline]
    pub(super) fn note_bytes(&mut self, link: LinkId, bytes: u64) {
        let most = &mut self[link].most_bytes;
        *most = bytes.max(*most);
    }
}

impl Index<LinkId> for Counts {
    type Output = LinkCounts;
    #[inline]
    fn index(&self, link: LinkId) -> &LinkCounts {
        &self.links[link.0 as usize]
    }
}

impl IndexMut<LinkId> for Counts {
    #[inline]
    fn index_mut(&mut self, link: LinkId) -> &mut LinkCounts {
        &mut self.links[link.0 as usize]
    }
}
