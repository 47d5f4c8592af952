//! Groups of switches, each joined to all others: the dragonfly.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{GLOBAL, Network, NetworkConfig, NetworkError};
use evb_core::{Bandwidth, Span};

pub(super) struct Groups {
    pub(super) groups: u16,
    /// Switches in a group.
    pub(super) routers: u16,
    /// Ports for hosts on each switch.
    pub(super) terminals: u16,
    /// Links of each switch to other groups.
    pub(super) global: u16,
}

/// Adds the switches group by group, as [`Network::group`] expects it.
pub(super) fn build(
    config: &NetworkConfig,
    groups: &Groups,
    rate: Option<Bandwidth>,
    delay: Option<Span>,
) -> Result<Network, NetworkError> {
    above_zero(&[
        ("topology.groups", groups.groups),
        ("topology.routers", groups.routers),
        ("topology.terminals", groups.terminals),
        ("topology.global", groups.global),
    ])?;
    let links = groups.links_between()?;
    let mut builder = NetworkBuilder::new(config, &groups.size(links))?;
    let switches: Vec<_> = (0..groups.groups)
        .flat_map(|group| (0..groups.routers).map(move |router| format!("g{group}r{router}")))
        .map(|name| builder.switch(name))
        .collect();
    let local = LinkProperties::new(config, None);
    builder.hosts(&switches, None, groups.terminals)?;
    for group in switches.chunks(groups.routers.into()) {
        for (place, &one) in group.iter().enumerate() {
            group[place + 1..].iter().for_each(|&other| builder.cables(one, other, 1, local));
        }
    }
    let global = LinkProperties { dimension: GLOBAL, ..LinkProperties::new(config, rate).delayed(delay) };
    for one in 0..groups.groups {
        for other in one + 1..groups.groups {
            for link in 0..links {
                let [from, to] =
                    [(one, other), (other, one)].map(|(at, to)| switches[groups.router(at, to, link, links)]);
                builder.cables(from, to, 1, global);
            }
        }
    }
    builder.finish()
}

impl Groups {
    /// Links between any two groups.
    fn links_between(&self) -> Result<u32, NetworkError> {
        let (links, others) = (u32::from(self.routers) * u32::from(self.global), u32::from(self.groups) - 1);
        match links.checked_div(others) {
            Some(0) => Err(NetworkError::TooFewGlobalLinks { links, groups: self.groups }),
            between => Ok(between.unwrap_or(0)),
        }
    }

    fn size(&self, between: u32) -> TopologySize {
        let [groups, routers, terminals] = [self.groups, self.routers, self.terminals].map(u64::from);
        let switches = groups * routers;
        let global = groups * (groups - 1) * u64::from(between);
        TopologySize { endpoints: switches * terminals, switches, links: switches * (routers - 1) + global }
    }

    /// The place of the switch of a group with this one of its links to another group. The links of a group are in the order of
    /// the other groups, and its switches have equally many of them, in order.
    fn router(&self, group: u16, other: u16, link: u32, links: u32) -> usize {
        let peer = u32::from(if other > group { other - 1 } else { other });
        let router = (peer * links + link) / u32::from(self.global);
        usize::from(group) * usize::from(self.routers) + router as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every switch has its `global` links if there is a link for every other group, and each pair of groups has one.
    #[test]
    fn links_to_other_groups_are_shared_evenly() {
        let groups = Groups { groups: 9, routers: 4, terminals: 2, global: 2 };
        let links = groups.links_between().expect("there are enough");
        assert_eq!(links, 1);
        for group in 0..9 {
            let others = (0..9).filter(|&other| other != group);
            let mut routers: Vec<_> = others.map(|other| groups.router(group, other, 0, links)).collect();
            routers.sort_unstable();
            let first = usize::from(group) * 4;
            assert_eq!(routers, [0, 0, 1, 1, 2, 2, 3, 3].map(|router| first + router));
        }
    }
}
