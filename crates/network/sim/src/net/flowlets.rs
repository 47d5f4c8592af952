//! Flowlets: a switch keeps the packets of a flow on one link until none has come for a gap, and then chooses again. A packet behind
//! the gap cannot overtake the one before it if the paths differ by less.
//!
//! Each switch does so by itself, and knows the load of its own links only. A real one has a table of some ten thousand hashed places,
//! in which flows may meet; here each flow has its own.

use super::{Net, routing};
use crate::packet::{Packet, PacketId};
use evb_core::{Span, Time};
use evb_fabric::{EndpointId, FlowletChoice, LinkId, Network, Routing, SwitchId};
use hashbrown::HashMap;

/// A switch, and the two ends of a flow.
type FlowAt = (SwitchId, EndpointId, EndpointId);

/// The flowlets of all switches.
pub(super) struct Flowlets {
    gap: Span,
    choice: FlowletChoice,
    /// At most one for each switch and pair of ports.
    current: HashMap<FlowAt, Flowlet>,
}

/// The packets of a flow that follow each other without a gap.
struct Flowlet {
    link: LinkId,
    /// Time of the last packet.
    last: Time,
}

impl Flowlets {
    /// No flowlets, where packets are routed by them.
    pub(super) fn of(network: &Network) -> Option<Self> {
        let Routing::Flowlets { gap, choice } = network.config.routing else { return None };
        Some(Self { gap, choice, current: HashMap::new() })
    }

    /// The link of the flowlet that a packet continues now, if it does.
    fn link(&self, now: Time, flow: FlowAt) -> Option<LinkId> {
        let flowlet = self.current.get(&flow)?;
        (now.since(flowlet.last) <= self.gap).then_some(flowlet.link)
    }
}

impl Net {
    /// Requests the link of the flowlet of a packet, which begins with it or goes on. After a failure it may have to begin.
    #[inline(never)]
    pub(super) fn route_by_flowlet(&mut self, id: PacketId) {
        let &Packet { lane, from, to, .. } = &self.packets[id];
        let (now, switch) = (self.queue.now(), self.links.switch_of(lane));
        let Some(flowlets) = &self.flowlets else { return };
        let (flow, choice) = ((switch, from, to), flowlets.choice);
        let known = flowlets.link(now, flow).filter(|link| self.router.outputs(switch, to).contains(link));
        let link = known.unwrap_or_else(|| self.begin_flowlet(choice, switch, to));
        if let Some(flowlets) = &mut self.flowlets {
            flowlets.current.insert(flow, Flowlet { link, last: now });
        }
        self.wait_for(link, id);
    }

    /// The link of a new flowlet among those that its packets may take.
    fn begin_flowlet(&mut self, choice: FlowletChoice, switch: SwitchId, to: EndpointId) -> LinkId {
        let outputs = self.router.outputs(switch, to);
        let first = routing::draw_first(outputs.len(), &mut self.random);
        let (before, from) = outputs.split_at(first);
        match choice {
            FlowletChoice::Random => from[0],
            FlowletChoice::ShortestQueue => {
                let links = from.iter().chain(before).copied();
                links.min_by_key(|&link| self.fullness(link)).unwrap_or(from[0])
            }
        }
    }

    /// The order in which links are chosen: those that work first, then those with a small load, then those that are free soon.
    fn fullness(&self, link: LinkId) -> (bool, u64, Time) {
        let port = &self.links[link];
        (port.failed, self.load(link), port.free_at.max(self.queue.now()))
    }
}
