//! Plans without a file. Defaults are those of a file, because they come from the same keys.

use crate::{
    check::check,
    diagnostics::{Diagnostics, Problem, Texts},
    plan::{Plan, Workload},
    sections::{self, data, network},
    tree::{Node, Table, Value},
    view::View,
};
use evb_core::SourceId;
use evb_protocol::Config;
use evb_sources::SourceSpec;

/// The default network: a crossbar with a port for each node.
pub(crate) const NETWORK: &str = "ideal";

impl Plan {
    /// A plan to build events with this configuration. Every readout unit has the same source, the network is `ideal`, and
    /// all other keys have their defaults. The rules of a file are not checked.
    ///
    /// ```
    /// use evb_experiment::Plan;
    /// use evb_protocol::Config;
    /// use evb_sources::SourceSpec;
    ///
    /// let building = Config { events: Some(1000), ..Config::new(8, 4) };
    /// let source = SourceSpec::Fixed { size: "2 kB".parse()? };
    /// let plan = Plan::new(building, source).on_network("myrinet-clos-128")?.with_seed(7);
    /// assert_eq!(plan.sources.len(), 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If there are no units of a kind, or more than a file may have.
    pub fn new(building: Config, source: SourceSpec) -> Self {
        let root = filled(&building, NETWORK).unwrap_or_else(|problems| panic!("{:?}", diagnostics(problems)));
        let mut plan = sections::plan(&root, Vec::new());
        let units = 0..building.readout_units;
        plan.building = building;
        if source.is_numbered() {
            plan.building.numbered = units.clone().map(SourceId).collect();
        }
        plan.sources = units.map(|_| source.clone()).collect();
        plan
    }

    /// The same plan on the network of a preset, with a host for each node of event building.
    ///
    /// # Errors
    /// There is no such preset, or it has fewer hosts than there are nodes.
    pub fn on_network(mut self, preset: &str) -> Result<Self, Diagnostics> {
        let root = filled(&self.building, preset).map_err(diagnostics)?;
        match network::rules::check(View(&root), &mut None) {
            problems if problems.is_empty() => self.network = network::plan(View(&root)),
            problems => return Err(diagnostics(problems)),
        }
        Ok(self)
    }

    /// The same plan with another seed of all random streams.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self.filter.seed = seed;
        if let Workload::Traffic(traffic) = &mut self.workload {
            traffic.config.seed = seed;
        }
        self
    }
}

/// The file that says how many units there are and what the network is.
fn filled(building: &Config, preset: &str) -> Result<Node, Vec<Problem>> {
    let mut root = Node::from(Value::Table(Table::default()));
    root.put(&["readout", "units"], None, Value::Integer(building.readout_units.into()).into());
    root.put(&["builder", "units"], None, Value::Integer(building.builder_units.into()).into());
    root.put(&["network", "preset"], None, Value::Text(preset.to_owned()).into());
    data::anchor(&mut root, "");
    sections::fill(&mut root, "");
    check(&root)
}

fn diagnostics(problems: Vec<Problem>) -> Diagnostics {
    Diagnostics::new("plan", problems, &Texts::new("plan", "", &[]))
}
