//! Moves of a packet: byte by byte for worms, by the first and the last byte for packets that never stop.

use super::{Happening, World};
use evb_core::Time;
use evb_fabric::{LinkEnd, WhenFull};

impl World<'_> {
    /// Sends the next byte of a worm on this hop, if it can be.
    pub(super) fn try_byte(&mut self, packet: usize, hop: usize) {
        let (slack, _) = self.slack().expect("only worms move by bytes");
        let Some(here) = self.packets[packet].route.get(hop) else { return };
        let all = u64::from(self.packets[packet].probe.wire);
        let there = if hop == 0 { all } else { self.packets[packet].route[hop - 1].there };
        if here.sending || here.sent == there {
            return;
        }
        let link = here.link;
        let ends = matches!(self.network.links[link].to, LinkEnd::Endpoint(_));
        if !ends && here.sent == here.known + slack {
            self.expected.stalls += 1;
            self.expected.stretch = self.expected.stretch.max(self.stretch(packet, slack));
            return;
        }
        self.packets[packet].route[hop].sending = true;
        self.plan(self.pace(link), Happening::ByteSent { packet, hop });
    }

    /// Number of links on which the worm is stalled for want of room.
    fn stretch(&self, packet: usize, slack: u64) -> usize {
        let ahead = |hop: &super::Hop| self.network.links[hop.link].to.switch().is_some();
        let is_stalled = |hop: &&super::Hop| ahead(hop) && !hop.sending && hop.sent == hop.known + slack;
        self.packets[packet].route.iter().filter(is_stalled).count()
    }

    pub(super) fn byte_sent(&mut self, packet: usize, hop: usize) {
        let (_, reaction) = self.slack().expect("only worms move by bytes");
        let here = &mut self.packets[packet].route[hop];
        here.sending = false;
        here.sent += 1;
        let (link, sent) = (here.link, here.sent);
        self.plan(self.network.links[link].delay.0, Happening::ByteThere { packet, hop });
        if hop > 0 {
            self.plan(reaction, Happening::ByteKnown { packet, hop: hop - 1 });
        }
        if sent == u64::from(self.packets[packet].probe.wire) {
            self.tail_sent(packet, hop);
        } else {
            self.try_byte(packet, hop);
        }
    }

    pub(super) fn byte_there(&mut self, packet: usize, hop: usize) {
        let here = &mut self.packets[packet].route[hop];
        here.there += 1;
        let there = here.there;
        if there == 1 {
            self.head_there(packet, hop);
        }
        if there == u64::from(self.packets[packet].probe.wire) {
            self.tail_there(packet, hop);
        }
        self.try_byte(packet, hop + 1);
    }

    pub(super) fn byte_known(&mut self, packet: usize, hop: usize) {
        self.packets[packet].route[hop].known += 1;
        self.try_byte(packet, hop);
    }

    /// Moves on a head that is first in its buffer.
    pub(super) fn head_there(&mut self, packet: usize, hop: usize) {
        let here = &mut self.packets[packet].route[hop];
        here.head_there = true;
        here.head_at = self.now;
        let (link, channel) = (here.link, here.channel);
        let at_switch = matches!(self.network.links[link].to, LinkEnd::Switch(_));
        if at_switch && (self.matches() || self.buffers[link][channel].packets[0] == packet) {
            self.plan(self.ready_at(packet, self.now) - self.now, Happening::Ask { packet });
        }
    }

    /// The link is free, and so is the place that the packet had before it.
    pub(super) fn tail_sent(&mut self, packet: usize, hop: usize) {
        let link = self.packets[packet].route[hop].link;
        self.wires[link].busy = false;
        match hop {
            0 => self.take(self.packets[packet].probe.from.0.into()),
            _ if self.store().is_some() => self.leave_store(packet, hop - 1),
            _ => self.leave_buffer(packet, hop - 1),
        }
    }

    fn leave_buffer(&mut self, packet: usize, hop: usize) {
        let before = &self.packets[packet].route[hop];
        let (link, channel, amount) = (before.link, before.channel, self.amount(packet));
        if self.slack().is_some() {
            self.bring_next(link, channel, packet);
        }
        self.plan(self.reaction(), Happening::Room { link, channel, amount });
    }

    /// The packet behind this one is the first of the buffer.
    pub(super) fn bring_next(&mut self, link: usize, channel: usize, packet: usize) {
        let matches = self.matches();
        let buffer = &mut self.buffers[link][channel];
        if matches {
            return buffer.packets.retain(|&other| other != packet);
        }
        assert_eq!(buffer.packets.pop_front(), Some(packet), "the first of a buffer is read");
        let next = buffer.packets.front().copied();
        if let Some(next) = next
            && let Some(hop) = self.packets[next].route.last().filter(|hop| hop.head_there)
        {
            // The switch has looked at the head since it came.
            let ready = self.ready_at(next, hop.head_at);
            self.plan(ready.saturating_sub(self.now), Happening::Ask { packet: next });
        }
    }

    pub(super) fn tail_there(&mut self, packet: usize, hop: usize) {
        let link = self.packets[packet].route[hop].link;
        if let LinkEnd::Endpoint(_) = self.network.links[link].to {
            self.expected.delivered[packet] = Some(Time(self.now));
        }
    }

    /// The packet, which came over this link, is put into the queue of its output.
    pub(super) fn enter_store(&mut self, packet: usize, link: usize) {
        let (queue, full, reaction) = self.store().expect("only such a switch stores packets");
        let buffer = &mut self.buffers[link][0];
        buffer.held += u64::from(self.packets[packet].probe.wire);
        if full != WhenFull::Drop && !buffer.full && buffer.held >= queue {
            buffer.full = true;
            self.expected.pauses += 1;
            self.plan(reaction, Happening::Pause { link, on: true });
        }
    }

    /// The last byte of the packet, which came over the link of this hop, has left the switch.
    fn leave_store(&mut self, packet: usize, hop: usize) {
        let (queue, _, reaction) = self.store().expect("only such a switch stores packets");
        let link = self.packets[packet].route[hop].link;
        let buffer = &mut self.buffers[link][0];
        buffer.held -= u64::from(self.packets[packet].probe.wire);
        if buffer.full && 2 * buffer.held <= queue {
            buffer.full = false;
            self.plan(reaction, Happening::Pause { link, on: false });
        }
    }

    fn reaction(&self) -> u64 {
        match self.network.config.flow {
            evb_fabric::Flow::Wormhole { reaction, .. }
            | evb_fabric::Flow::CutThrough { reaction, .. }
            | evb_fabric::Flow::StoreAndForward { reaction, .. } => reaction.0,
        }
    }
}
