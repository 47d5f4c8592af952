//! The planning file: what is asked of a network, and what is free.

use crate::{PlannerError, Range, file};
use evb_core::{Frequency, Span};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A planning file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirements {
    /// Name of the plan; the file's stem by default.
    #[serde(default)]
    pub name: String,
    /// The experiment file: sources, sizes, protocol and hosts, and how packets behave. A path from the folder of this file.
    pub experiment: PathBuf,
    /// The file of the parts. A path from the folder of this file.
    pub parts: PathBuf,
    /// The requirement.
    #[serde(default)]
    pub goal: Goal,
    /// What the planner may choose.
    #[serde(default)]
    pub freedom: Freedom,
    /// The place of the network.
    #[serde(default)]
    pub site: Site,
    /// The effort of the search.
    #[serde(default)]
    pub search: Effort,
}

/// What a network must do.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Goal {
    /// Event rate; that of the experiment by default. The upper end of a range is required.
    pub rate: Option<Range<Frequency>>,
    /// Factor of all fragment sizes. The upper end of a range is required.
    pub size: Range<f64>,
    /// Part by which the rate may grow later.
    pub growth: f64,
    /// Part of the rate that is kept in reserve.
    pub headroom: f64,
    /// Accepted loss in per cent of the events.
    pub accept_loss: u8,
    /// Longest 99th percentile of the latency of events.
    pub latency: Option<Span>,
    /// Any one of these parts may fail, and the rate with its growth is still carried, without the headroom. Hosts have one
    /// cable, so only what is between switches can be survived.
    pub survive: Vec<Failure>,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            rate: None,
            size: Range::exactly(1.0),
            growth: 0.0,
            headroom: 0.0,
            accept_loss: 0,
            latency: None,
            survive: Vec::new(),
        }
    }
}

/// A part that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// A cable between two switches.
    Cable,
    /// A switch without hosts.
    Switch,
}

impl Failure {
    /// The name in a planning file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cable => "cable",
            Self::Switch => "switch",
        }
    }
}

/// What the planner may choose.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Freedom {
    /// Numbers of levels of switches: 1 is one switch, 2 is leaf and spine, 3 is a fat tree of three levels.
    pub levels: Vec<u8>,
    /// Highest oversubscription of a leaf: the rate of its hosts over that of its uplinks.
    pub oversubscription: f64,
    /// Names of the switches that may be used; all of them if it is empty.
    pub switches: Vec<String>,
    /// Names of the interfaces that may be used; all of them if it is empty.
    pub interfaces: Vec<String>,
    /// Keys of the experiment and their possible values, as in `[sweep]`.
    pub keys: toml::Table,
}

impl Default for Freedom {
    fn default() -> Self {
        Self {
            levels: vec![1, 2, 3],
            oversubscription: 16.0,
            switches: Vec::new(),
            interfaces: Vec::new(),
            keys: toml::Table::new(),
        }
    }
}

/// The lengths of cables, in metres.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Site {
    /// From a host to its switch.
    pub host_cable_m: f64,
    /// Between switches.
    pub switch_cable_m: f64,
}

impl Default for Site {
    fn default() -> Self {
        Self { host_cable_m: 3.0, switch_cable_m: 20.0 }
    }
}

/// The effort of the search.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Effort {
    /// Triggers of the simulations, shortest first; with blocks, numbers of blocks. Each network that a shorter one does not exclude
    /// has the next one, until one of them shows that it is enough. The first one excludes only.
    pub triggers: Vec<u64>,
    /// Loads that the front is searched for, as factors of the requirement.
    pub loads: Vec<f64>,
    /// Most simulations.
    pub simulations: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { triggers: vec![500, 2000, 8000], loads: vec![1.0, 1.25, 1.5, 2.0], simulations: 1000 }
    }
}

impl Requirements {
    /// Reads a planning file. Its paths are made relative to the working directory.
    ///
    /// # Errors
    /// The file cannot be read, is not such a file, or has impossible values.
    pub fn load(path: &Path) -> Result<Self, PlannerError> {
        let mut read: Self = file::read_toml(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        if read.name.is_empty() {
            read.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        read.experiment = folder.join(&read.experiment);
        read.parts = folder.join(&read.parts);
        match read.problem() {
            Some((what, hint)) => Err(PlannerError::file(path, what, hint)),
            None => Ok(read),
        }
    }

    /// The first value that is impossible, and what is possible.
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let Self { goal, freedom, site, search, .. } = self;
        let is_part = |value: f64| (0.0..=100.0).contains(&value);
        let is_length = |value: f64| (0.0..=100_000.0).contains(&value);
        let checks = [
            (
                !(goal.size.low > 0.0 && goal.size.high <= 1000.0),
                "goal.size is not between 0 and 1000",
                "1 is the experiment",
            ),
            (!is_part(goal.growth), "goal.growth is not between 0 and 100", "0.2 is a growth by 20 %"),
            (!is_part(goal.headroom), "goal.headroom is not between 0 and 100", "0.1 is a reserve of 10 %"),
            (goal.accept_loss > 100, "goal.accept_loss is above 100", "it is in per cent"),
            (
                freedom.levels.is_empty() || freedom.levels.iter().any(|levels| !(1..=3).contains(levels)),
                "freedom.levels has other numbers than 1, 2 and 3",
                "levels = [1, 2, 3]",
            ),
            (
                !(1.0..=1000.0).contains(&freedom.oversubscription),
                "freedom.oversubscription is not between 1 and 1000",
                "1 is as many uplinks as hosts, by their rates",
            ),
            (
                !(is_length(site.host_cable_m) && is_length(site.switch_cable_m)),
                "the length of a cable in [site] is not between 0 and 100 km",
                "lengths are in metres",
            ),
            (
                search.triggers.is_empty() || search.triggers.iter().any(|count| !(10..=10_000_000).contains(count)),
                "search.triggers has a number that is not between 10 and 10 million",
                "triggers = [500, 2000, 8000]",
            ),
            (
                !search.loads.contains(&1.0) || search.loads.iter().any(|load| !(1.0..=100.0).contains(load)),
                "search.loads lacks 1, or has a load that is not between 1 and 100",
                "loads = [1, 1.25, 1.5, 2]",
            ),
            (search.simulations == 0, "search.simulations is 0", "1000 is the default"),
        ];
        checks.into_iter().find(|(is_bad, ..)| *is_bad).map(|(_, what, hint)| (what, hint))
    }
}
