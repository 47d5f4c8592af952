//! The links between groups of switches, of the dragonfly and of the dragonfly+.

use crate::builder::{LinkProperties, NetworkBuilder};
use crate::{GLOBAL, NetworkConfig, NetworkError, SwitchId};
use evb_core::{Bandwidth, Span};

/// Groups of switches, each joined to all other groups by the same number of links.
pub(super) struct GlobalLinks {
    pub(super) groups: u16,
    /// Switches of a group that have links to other groups.
    pub(super) routers: u16,
    /// Links of each of them to other groups.
    pub(super) global: u16,
    pub(super) properties: LinkProperties,
}

/// The properties of links between groups.
pub(super) fn properties(config: &NetworkConfig, rate: Option<Bandwidth>, delay: Option<Span>) -> LinkProperties {
    LinkProperties { dimension: GLOBAL, ..LinkProperties::new(config, rate).delayed(delay) }
}

impl GlobalLinks {
    /// Links between any two groups.
    pub(super) fn between(&self) -> Result<u32, NetworkError> {
        let (links, others) = (u32::from(self.routers) * u32::from(self.global), u32::from(self.groups) - 1);
        match links.checked_div(others) {
            Some(0) => Err(NetworkError::TooFewGlobalLinks { links, groups: self.groups }),
            between => Ok(between.unwrap_or(0)),
        }
    }

    /// All links, each direction counted, with this many between two groups.
    pub(super) fn number(&self, between: u32) -> u64 {
        u64::from(self.groups) * u64::from(self.groups - 1) * u64::from(between)
    }

    /// Joins the groups. `routers` are the switches with links to other groups, group by group.
    pub(super) fn join(&self, builder: &mut NetworkBuilder<'_>, routers: &[SwitchId], between: u32) {
        for one in 0..self.groups {
            for other in one + 1..self.groups {
                for link in 0..between {
                    let [from, to] =
                        [(one, other), (other, one)].map(|(at, to)| routers[self.router(at, to, link, between)]);
                    builder.cables(from, to, 1, self.properties);
                }
            }
        }
    }

    /// The place of the switch of a group with this one of its links to another group. The links of a group are in the order of
    /// the other groups, and its switches have equally many of them, in order.
    fn router(&self, group: u16, other: u16, link: u32, between: u32) -> usize {
        let peer = u32::from(if other > group { other - 1 } else { other });
        let router = (peer * between + link) / u32::from(self.global);
        usize::from(group) * usize::from(self.routers) + router as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every switch has its `global` links, in the order of the other groups, if there is a link for each of these.
    #[test]
    fn links_to_other_groups_are_shared_evenly() {
        let properties =
            LinkProperties { rate: Bandwidth(8), delay: Span::ZERO, marking: None, dimension: 0, dateline: false };
        let groups = GlobalLinks { groups: 9, routers: 4, global: 2, properties };
        let links = groups.between().expect("there are enough");
        assert_eq!(links, 1);
        for group in 0..9 {
            let others = (0..9).filter(|&other| other != group);
            let routers: Vec<_> = others.map(|other| groups.router(group, other, 0, links)).collect();
            let first = usize::from(group) * 4;
            assert_eq!(routers, [0, 0, 1, 1, 2, 2, 3, 3].map(|router| first + router));
        }
    }
}
