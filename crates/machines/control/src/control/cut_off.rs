//! Nodes that are cut off from their peers: what run control does about reports of lost peers.

use super::{ConfigureStep, Control, Phase};
use crate::{
    Loss, Notice, Order,
    lost_peers::{CutOffNode, Members},
};
use alloc::collections::BTreeSet;
use evb_core::{NodeId, NodeRange, Time};

impl Control {
    /// Takes the report of a lost peer. Which node is cut off is decided when others have reported, too.
    pub(super) fn lose_peer(&mut self, now: Time, by: NodeId, peer: NodeId) {
        match self.phase {
            // All nodes connect again.
            Phase::Configuring { step: ConfigureStep::Join | ConfigureStep::Open | ConfigureStep::Connect, .. } => {
                return;
            }
            // The next run must not begin on connections that are broken.
            Phase::Configuring { step, .. } => return self.not_ready(step, peer),
            phase if !phase.is_building() => return self.nodes.disconnect_all(),
            _ => {}
        }
        if self.nodes.is_lost(by) || self.nodes.is_lost(peer) {
            return;
        }
        self.nodes.disconnect(peer);
        if self.are_peers(by, peer) {
            self.lost_peers.add(by, peer, now + self.config.report_window);
            if let Some(cut_off) = self.lost_peers.isolated([peer, by], self) {
                self.exclude(now, cut_off);
            }
        }
    }

    /// Takes the report of the event manager that the run is over. The reason may be that the event manager is cut off, so
    /// the run ends when no reports of lost peers wait.
    pub(super) fn note_end(&mut self, now: Time, notice: Notice) {
        if self.phase.is_building() {
            self.reported_end.get_or_insert((now, notice));
        }
    }

    /// Ends the run if the event manager has reported its end, and no reports of lost peers wait.
    pub(super) fn end_without_lost_peers(&mut self, now: Time) {
        if self.lost_peers.until().is_none()
            && let Some((at, notice)) = self.reported_end.take()
        {
            match notice {
                Notice::NoBuilders => self.lose_builders(now),
                _ => self.drain(now, at),
            }
        }
    }

    /// Gives up nodes until none have lost each other.
    pub(super) fn exclude_cut_off(&mut self, now: Time) {
        while self.phase.is_building()
            && let Some(cut_off) = self.lost_peers.next(self)
        {
            self.exclude(now, cut_off);
        }
        self.end_when_all_finished(now);
    }

    /// Gives up a node that its peers cannot reach and run control may still hear: its network is cut, or its process
    /// was stopped. It has no part in the run any more. If it wakes up, all its peers are gone, and its reports do not
    /// count.
    fn exclude(&mut self, now: Time, CutOffNode { node, disconnected, alternative }: CutOffNode) {
        let peers = self.peers(node) as u16;
        // Nodes find out one after the other: one that wakes up meanwhile must not be given events by the last.
        self.order(self.config.event_manager, Order::Lost(node));
        self.lose(node, Loss::Unreachable { disconnected, peers, alternative });
        self.order(node, Order::Finish);
        if node == self.config.event_manager {
            self.finish(now);
        }
    }

    /// The range of nodes that exchange nothing with each other to which a node belongs.
    fn group(&self, node: NodeId) -> Option<usize> {
        self.config.groups.iter().position(|group| group.contains(node))
    }

    /// True if two nodes exchange messages.
    fn are_peers(&self, one: NodeId, other: NodeId) -> bool {
        one != other && (self.group(one).is_none() || self.group(one) != self.group(other))
    }

    fn is_left(&self, node: NodeId) -> bool {
        !self.nodes.is_lost(node)
    }
}

impl Members for Control {
    fn event_manager(&self) -> NodeId {
        self.config.event_manager
    }

    fn peers(&self, node: NodeId) -> usize {
        let others = (0..self.config.nodes).map(NodeId);
        others.filter(|other| self.is_left(*other) && self.are_peers(node, *other)).count()
    }

    fn covers_group(&self, nodes: &BTreeSet<NodeId>) -> bool {
        let is_covered = |group: &NodeRange| {
            let mut left = group.iter().filter(|node| self.is_left(*node)).peekable();
            left.peek().is_some() && left.all(|node| nodes.contains(&node))
        };
        match &self.config.groups[..] {
            [] => nodes.len() >= self.peers(self.config.event_manager),
            groups => groups.iter().any(is_covered),
        }
    }

    fn need(&self, node: NodeId) -> u32 {
        let config = &self.config;
        let left_in = |range: &NodeRange| range.iter().filter(|one| self.is_left(*one)).count();
        let has_few = |(range, least): &(NodeRange, u16)| range.contains(node) && left_in(range) <= usize::from(*least);
        let group = self.group(node);
        let is_last = group.is_some_and(|group| left_in(&config.groups[group]) <= 1);
        if node == config.event_manager {
            u32::MAX
        } else if is_last || config.required.contains(&node) || config.least.iter().any(has_few) {
            u32::MAX - 1
        } else {
            (config.groups.len() - group.unwrap_or_default()) as u32
        }
    }
}
