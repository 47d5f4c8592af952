//! Headroom: the room of an input for what is still under way after it has asked its sender to pause.

use crate::{Flow, Network, NetworkConfig};
use evb_core::{Bandwidth, ByteCount, Span};

/// Picoseconds of a byte at one bit per second.
const PS_PER_BYTE: u128 = Bandwidth(1).byte_time().0 as u128;

/// The inputs of switches whose cables are alike, and their headroom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Rate of the cable.
    pub rate: Bandwidth,
    /// Delay of the cable.
    pub delay: Span,
    /// Number of these inputs.
    pub inputs: usize,
    /// Bytes that may come after the input has asked for a pause.
    pub needed: ByteCount,
    /// Bytes that it has room for, of each priority in pauses by priority.
    pub given: ByteCount,
}

impl NetworkConfig {
    /// Time from an input asking for a pause to its sender obeying: the reaction of the flow, but no less than the cable needs.
    pub fn pause_delay(&self, delay: Span) -> Span {
        match self.flow {
            Flow::StoreAndForward { reaction, .. } => reaction.max(delay),
            Flow::Wormhole { .. } | Flow::CutThrough { .. } => Span::ZERO,
        }
    }

    /// Bytes that may come over a cable of this rate and delay after the switch at its end has asked for a pause: those on the
    /// cable both ways and within the response time, and the largest packet of either side (IEEE 802.1Q-2018, annex N, of
    /// 802.1Qbb; SONiC, buffer_headroom_mellanox.lua, has the same terms). The response time is `switch.delay`, after which a
    /// packet is counted, and what `flow.reaction` has beside the way over the cable.
    pub fn headroom_for(&self, rate: Bandwidth, delay: Span) -> ByteCount {
        let round_trip =
            [delay, self.switch.delay, self.pause_delay(delay)].iter().map(|span| u128::from(span.0)).sum::<u128>();
        let under_way = (round_trip * u128::from(rate.0)).div_ceil(PS_PER_BYTE);
        let packets = self.nic.wire_size(self.nic.packet).0.saturating_mul(2);
        ByteCount(u64::try_from(under_way).unwrap_or(u64::MAX).saturating_add(packets))
    }
}

impl Network {
    /// The headroom of the inputs of switches, of each kind of cable; none where senders do not pause.
    pub fn headrooms(&self) -> Vec<Headroom> {
        let Flow::StoreAndForward { headroom, .. } = self.config.flow else { return Vec::new() };
        let mut found: Vec<Headroom> = Vec::new();
        let inputs = self.links.iter().filter(|link| self.config.flow.pauses() && link.to.switch().is_some());
        for link in inputs {
            let (rate, delay) = (link.rate, link.delay);
            match found.iter_mut().find(|one| (one.rate, one.delay) == (rate, delay)) {
                Some(known) => known.inputs += 1,
                None => {
                    let needed = self.config.headroom_for(rate, delay);
                    found.push(Headroom { rate, delay, inputs: 1, needed, given: headroom.unwrap_or(needed) });
                }
            }
        }
        found
    }
}
