//! Links that fail, slow down or corrupt.

use super::links::Port;
use evb_core::Span;
use evb_fabric::{LinkId, Network, NetworkFaultAction, Target};

/// The harm that was done to each link. Only links whose port is marked as harmed are looked up.
pub(super) struct Faults {
    harms: Vec<Harm>,
}

#[derive(Clone, Copy, Debug)]
struct Harm {
    /// Packets of which one is corrupted; 0 for none.
    corrupt_one_in: u64,
    /// Factor by which it is slower than configured.
    slowness: f64,
}

impl Faults {
    pub(super) fn new(links: usize) -> Self {
        Self { harms: vec![Harm { corrupt_one_in: 0, slowness: 1.0 }; links] }
    }

    /// Harms a link.
    pub(super) fn harm(&mut self, link: LinkId, port: &mut Port, action: NetworkFaultAction) {
        let harm = &mut self.harms[link.0 as usize];
        match action {
            NetworkFaultAction::Fail { .. } => port.failed = true,
            NetworkFaultAction::Slow { factor } => harm.slowness = factor,
            NetworkFaultAction::Corrupt { one_in } => harm.corrupt_one_in = one_in,
        }
        port.harmed = true;
    }

    /// A time on a link, longer when the link is slow.
    #[inline]
    pub(super) fn slowed(&self, link: LinkId, port: &Port, time: Span) -> Span {
        if !port.harmed {
            return time;
        }
        Span((time.0 as f64 * self.harms[link.0 as usize].slowness).round() as u64)
    }

    /// True when a link corrupts the packet with this number, counted from 1.
    #[inline]
    pub(super) fn corrupts(&self, link: LinkId, port: &Port, number: u64) -> bool {
        if !port.harmed {
            return false;
        }
        let one_in = self.harms[link.0 as usize].corrupt_one_in;
        one_in > 0 && number.is_multiple_of(one_in)
    }
}

/// The links that a fault harms: for a switch its outgoing links, and if it fails also those that lead to it.
pub(super) fn harmed_links(network: &Network, target: Target, action: NetworkFaultAction) -> Vec<LinkId> {
    match target {
        Target::Link(link) => vec![link],
        Target::Switch(switch) => {
            let switch = network.switch(switch);
            let both = matches!(action, NetworkFaultAction::Fail { .. });
            let inputs = switch.inputs.iter().filter(|_| both);
            switch.outputs.iter().chain(inputs).copied().collect()
        }
    }
}
