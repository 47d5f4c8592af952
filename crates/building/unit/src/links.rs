//! Links that died in a run over several links, in the account.

use crate::{Account, DeadLink};
use evb_core::NodeId;
use evb_record::{Finding, FindingKind};
use std::collections::{BTreeMap, BTreeSet};

impl Account {
    /// A finding for each link that died although the peers live, by the name of the link.
    pub fn dead_links(&self) -> BTreeMap<String, Finding> {
        let mut deaths = BTreeMap::<&str, Vec<(NodeId, &DeadLink)>>::new();
        for (node, dead) in self.reported_links() {
            deaths.entry(&dead.link).or_default().push((node, dead));
        }
        deaths.into_iter().map(|(link, deaths)| (link.to_owned(), self.dead_link(link, &deaths))).collect()
    }

    /// Dead links of all nodes.
    fn reported_links(&self) -> impl Iterator<Item = (NodeId, &DeadLink)> {
        self.drivers().flat_map(|(node, driver)| driver.dead_links.iter().map(move |link| (node, link)))
    }

    fn dead_link(&self, link: &str, deaths: &[(NodeId, &DeadLink)]) -> Finding {
        let pairs: BTreeSet<_> =
            deaths.iter().map(|(node, dead)| [*node.min(&dead.peer), *node.max(&dead.peer)]).collect();
        let name = |node| self.config.node_name(node);
        let places = match pairs.first() {
            Some(&[one, other]) if pairs.len() == 1 => format!("{} and {}", name(one), name(other)),
            _ => format!("{} pairs of nodes", pairs.len()),
        };
        let reason = deaths.first().map_or_else(String::new, |(node, dead)| {
            format!("; {} says of {}: {}", name(*node), name(dead.peer), dead.reason)
        });
        let message = format!("the link {link} died between {places}{reason}");
        Finding::new(FindingKind::DeadLink, "transport.links", message)
            .hint("the events do not suffer, their rate does: repair the link, and configure again")
    }
}
