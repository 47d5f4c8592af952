//! Oversubscription of trees: what hosts could send up, over what the links up can carry.

use crate::{LinkEnd, Network, layers};
use evb_core::Bandwidth;

/// The rates of all links of one level of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRates {
    /// The name that its switches have before their numbers.
    pub name: String,
    /// Number of switches.
    pub switches: usize,
    /// Sum over the links to the level below, or to the hosts.
    pub down: Bandwidth,
    /// Sum over the links to the level above; zero at the highest level.
    pub up: Bandwidth,
}

impl LevelRates {
    const EMPTY: Self = Self { name: String::new(), switches: 0, down: Bandwidth(0), up: Bandwidth(0) };

    /// The rate down over the rate up; `None` at the highest level.
    pub fn oversubscription(&self) -> Option<f64> {
        (self.up.0 > 0).then(|| self.down.0 as f64 / self.up.0 as f64)
    }
}

impl Network {
    /// The levels of a tree, that of the hosts first; none in any other topology.
    pub fn levels(&self) -> Vec<LevelRates> {
        if !self.config.topology.is_tree() {
            return Vec::new();
        }
        let level_of = layers::layers(self);
        let mut levels = vec![LevelRates::EMPTY; level_of.iter().max().map_or(0, |&last| usize::from(last) + 1)];
        for (switch, &level) in self.switches.iter().zip(&level_of) {
            let level = &mut levels[usize::from(level)];
            level.switches += 1;
            level.name = switch.name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '.').to_owned();
        }
        for link in &self.links {
            let LinkEnd::Switch(from) = link.from else { continue };
            let here = level_of[usize::from(from.0)];
            let is_up = link.to.switch().is_some_and(|to| level_of[usize::from(to.0)] > here);
            let level = &mut levels[usize::from(here)];
            let sum = if is_up { &mut level.up } else { &mut level.down };
            sum.0 = sum.0.saturating_add(link.rate.0);
        }
        levels
    }
}
