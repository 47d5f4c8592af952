//! Learning bridges (IEEE 802.1D): a switch learns from the packets of a host where it is, and sends a packet to a host
//! that it does not know to all its branches of the spanning tree.

use super::Net;
use crate::packet::{Load, Packet, PacketId};
use evb_core::{Span, Time};
use evb_fabric::{EndpointId, LinkId, Network, Routes, Routing, SwitchId};
use std::collections::BTreeMap;

/// The address tables of all switches.
pub(super) struct Bridges {
    /// Time after which a host that sends nothing is forgotten.
    age: Span,
    endpoints: usize,
    /// Per switch and port of a host: when it was heard last. Where it was heard is on the tree, since tables are emptied
    /// when the tree changes.
    heard: Vec<Option<Time>>,
    /// Per switch its branches of the tree that lead to hosts: one link, or the parallel links of a trunk.
    branches: Vec<Vec<Vec<LinkId>>>,
}

impl Bridges {
    /// Empty tables, where packets are routed by learning bridges.
    pub(super) fn of(network: &Network, routes: &Routes) -> Option<Self> {
        let Routing::Learning { age } = network.config.routing else { return None };
        let (switches, endpoints) = (network.switches.len(), network.endpoints.len());
        let all = || (0..endpoints).map(|end| EndpointId(end as u16));
        let branches = |switch| {
            let mut branches: Vec<_> =
                all().map(|to| routes.candidates(SwitchId(switch as u16), to).to_vec()).collect();
            branches.retain(|branch| !branch.is_empty());
            branches.sort();
            branches.dedup();
            branches
        };
        let branches = (0..switches).map(branches).collect();
        Some(Self { age, endpoints, heard: vec![None; switches * endpoints], branches })
    }

    fn place(&self, switch: SwitchId, end: EndpointId) -> usize {
        usize::from(switch.0) * self.endpoints + usize::from(end.0)
    }

    fn knows(&self, switch: SwitchId, end: EndpointId, now: Time) -> bool {
        self.heard[self.place(switch, end)].is_some_and(|at| now.since(at) < self.age)
    }
}

/// Packets with copies in the switch that made them. A packet and its copies take room in an input once, until the last of them
/// has left.
#[derive(Default)]
pub(super) struct Copies {
    /// The group of each packet that has copies, and of each copy.
    groups: BTreeMap<PacketId, u64>,
    /// Members of each group that are still in the switch.
    members: BTreeMap<u64, u32>,
    /// Groups so far.
    made: u64,
}

impl Copies {
    fn add(&mut self, id: PacketId, copy: PacketId) {
        let Self { groups, members, made } = self;
        let group = *groups.entry(id).or_insert_with(|| {
            *made += 1;
            members.insert(*made, 1);
            *made
        });
        groups.insert(copy, group);
        *members.entry(group).or_default() += 1;
    }

    /// A packet leaves a switch. Returns true if it gives back its room, since no copy of it is left there.
    #[inline]
    pub(super) fn leave(&mut self, id: PacketId) -> bool {
        self.groups.is_empty() || self.leave_group(id)
    }

    fn leave_group(&mut self, id: PacketId) -> bool {
        let Some(group) = self.groups.remove(&id) else { return true };
        let Some(left) = self.members.get_mut(&group) else { return true };
        *left -= 1;
        let is_last = *left == 0;
        if is_last {
            self.members.remove(&group);
        }
        is_last
    }
}

impl Net {
    /// Forwards a packet that is whole in a switch as a learning bridge does. Copies to branches without its destination
    /// are strays.
    pub(super) fn bridge(&mut self, id: PacketId) {
        let Packet { lane, from, to, .. } = self.packets[id];
        let (now, switch) = (self.queue.now(), self.links.switch_of(lane));
        let before = self.network.link(self.links.link_of(lane)).from;
        let Some(bridges) = &mut self.bridges else { return };
        let place = bridges.place(switch, from);
        bridges.heard[place] = Some(now);
        let way = self.router.outputs(switch, to);
        let is_back = |branch: &[LinkId]| self.network.link(branch[0]).to == before;
        let is_known = bridges.knows(switch, to, now);
        let flooded = if is_known { &[][..] } else { &bridges.branches[usize::from(switch.0)] };
        let others: Vec<_> = flooded.iter().filter(|branch| **branch != *way && !is_back(branch)).cloned().collect();
        let onward = (!way.is_empty() && !is_back(way)).then(|| way.to_vec());
        for branch in others {
            self.copy_to(id, &branch);
        }
        match onward {
            Some(way) => self.request_one_of(id, &way),
            // What came from the branch of its destination is not sent back there.
            None => self.lose(id),
        }
    }

    /// Sends a copy of a packet to a branch.
    fn copy_to(&mut self, id: PacketId, branch: &[LinkId]) {
        let copy = self.packets.insert(Packet { load: Load::Stray, ..self.packets[id].clone() });
        self.without_message += 1;
        self.trace.copy(id, copy);
        if self.network.config.flow.pauses() {
            self.copies.add(id, copy);
        }
        self.request_one_of(copy, branch);
    }

    /// Requests a link of a branch for a packet.
    pub(super) fn request_one_of(&mut self, id: PacketId, branch: &[LinkId]) {
        let link = match branch {
            &[link] => link,
            _ => self.router.pick(&self.network, &mut self.random, &self.packets[id], branch),
        };
        self.wait_for(link, id);
    }
}
