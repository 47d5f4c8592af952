//! Moves of a packet: byte by byte for worms, by the first and the last byte for packets that never stop.

use super::{Happening, World};
use evb_core::Time;
use evb_fabric::{Flow, LinkEnd, SharedMemory, WhenFull};

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

    /// The packet, which came over this link, is put into the queue of its output. Returns false if the input has no room for it.
    pub(super) fn enter_store(&mut self, packet: usize, link: usize) -> bool {
        let (queue, full, _) = self.store().expect("only such a switch stores packets");
        if full == WhenFull::Drop {
            return true;
        }
        let (wire, headroom) = (u64::from(self.packets[packet].probe.wire), self.headroom(link));
        let (limit, is_shared) = (self.limit(link), self.network.config.switch.memory.is_some());
        let has_memory = self.has_input_memory(link, wire);
        let buffer = &mut self.buffers[link][0];
        let is_full = match is_shared {
            false if buffer.held + wire > queue + headroom => return false,
            false => {
                buffer.held += wire;
                buffer.held >= queue
            }
            true if buffer.held + wire <= limit && has_memory => {
                buffer.held += wire;
                buffer.headroom > 0
            }
            true if buffer.headroom + wire > headroom => return false,
            true => {
                buffer.headroom += wire;
                true
            }
        };
        if is_full && !buffer.full {
            buffer.full = true;
            self.expected.pauses += 1;
            self.plan(self.pause_delay(link), Happening::Pause { link, on: true });
        }
        true
    }

    /// The last byte of the packet, which came over the link of this hop, has left the switch.
    fn leave_store(&mut self, packet: usize, hop: usize) {
        let (queue, full, _) = self.store().expect("only such a switch stores packets");
        if full == WhenFull::Drop {
            return;
        }
        let link = self.packets[packet].route[hop].link;
        let wire = u64::from(self.packets[packet].probe.wire);
        let buffer = &mut self.buffers[link][0];
        let of_headroom = wire.min(buffer.headroom);
        buffer.headroom -= of_headroom;
        buffer.held -= wire - of_headroom;
        let (held, headroom) = (buffer.held, buffer.headroom);
        let ends = match self.network.config.switch.memory {
            None => 2 * held <= queue,
            Some(memory) => {
                let offset = memory.xon_offset.map_or(3556, |offset| offset.0);
                headroom == 0 && (held <= memory.least.0 || held + offset <= self.limit(link))
            }
        };
        if ends && self.buffers[link][0].full {
            self.buffers[link][0].full = false;
            self.plan(self.pause_delay(link), Happening::Pause { link, on: false });
        }
    }

    /// Free bytes of the memory that the inputs of the switch at the end of the link share.
    fn free_of_inputs(&self, link: usize) -> u64 {
        let Some(memory) = self.network.config.switch.memory else { return 0 };
        let switch = self.network.links[link].to.switch().expect("only a switch stores packets");
        let inputs = &self.network.switch(switch).inputs;
        let taken = inputs.iter().map(|input| self.buffers[input.0 as usize][0].held.saturating_sub(memory.least.0));
        memory.size.0 - taken.sum::<u64>()
    }

    /// Bytes that the input at the end of the link may hold before it asks for a pause.
    fn limit(&self, link: usize) -> u64 {
        let (queue, ..) = self.store().expect("only such a switch stores packets");
        let dynamic =
            |memory: SharedMemory| memory.least.0 + (memory.alpha * self.free_of_inputs(link) as f64).floor() as u64;
        self.network.config.switch.memory.map_or(queue, |memory| queue.min(dynamic(memory)))
    }

    /// True if the shared memory has room for what of these bytes is beyond those that the input has for itself.
    fn has_input_memory(&self, link: usize, wire: u64) -> bool {
        let Some(memory) = self.network.config.switch.memory else { return true };
        let held = self.buffers[link][0].held;
        let beyond = |held: u64| held.saturating_sub(memory.least.0);
        beyond(held + wire) - beyond(held) <= self.free_of_inputs(link)
    }

    /// Headroom of the input at the end of the link: twice the cable, at least the reaction on one of the ways, the delay of the
    /// switch, and two packets.
    fn headroom(&self, link: usize) -> u64 {
        let Flow::StoreAndForward { headroom, .. } = self.network.config.flow else { return 0 };
        let (config, link) = (&self.network.config, &self.network.links[link]);
        let trip = u128::from(link.delay.0 + config.switch.delay.0 + self.reaction().max(link.delay.0));
        let bytes = (trip * u128::from(link.rate.0)).div_ceil(super::BYTE) as u64;
        headroom.map_or(bytes + 2 * config.nic.wire_size(config.nic.packet).0, |headroom| headroom.0)
    }

    /// Time from asking for a pause to the sender obeying.
    fn pause_delay(&self, link: usize) -> u64 {
        self.reaction().max(self.network.links[link].delay.0)
    }

    fn reaction(&self) -> u64 {
        match self.network.config.flow {
            evb_fabric::Flow::Wormhole { reaction, .. }
            | evb_fabric::Flow::CutThrough { reaction, .. }
            | evb_fabric::Flow::StoreAndForward { reaction, .. } => reaction.0,
        }
    }
}
