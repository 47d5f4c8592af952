//! Plans without a file. Defaults are those of a file, because they come from the same keys.

use crate::{
    Bundling,
    check::check,
    diagnostics::{Diagnostics, Problem, Texts},
    experiment::Other,
    parse,
    plan::{Plan, TrafficPlan, Workload},
    sections::{
        self, data,
        network::{self, KnownNetwork, preset_keys::DEFAULT_NETWORK},
    },
    tree::{Node, Table, Value},
    view::View,
};
use evb_core::SourceId;
use evb_protocol::{Config, Protocol};
use evb_sources::SourceSpec;

/// The default workload.
const EVENT_BUILDING: &str = "event-building";
/// The name of what is in no file, in messages.
const PLAN: &str = "plan";

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
    /// If a kind of unit is missing, or has more units than a file may have.
    pub fn new(building: Config, source: SourceSpec) -> Self {
        let root = check(&filled(nodes(&building, EVENT_BUILDING)));
        let root = root.unwrap_or_else(|problems| panic!("{:?}", diagnostics(problems)));
        let mut plan = sections::plan(&root, Vec::new(), &KnownNetwork::default());
        let units = 0..building.readout_units;
        plan.filter.phased = matches!(building.protocol, Protocol::Phased { rest: true, .. });
        plan.building = building;
        if source.is_numbered() {
            plan.building.numbered = units.clone().map(SourceId).collect();
        }
        plan.sources = units.map(|_| source.clone()).collect();
        plan.bundling = Bundling::default();
        plan
    }

    /// A plan of traffic without an event manager, as [`new`](Self::new) makes one of event building. Of its senders and
    /// receivers only the numbers count: node 0 is for an event manager in every plan.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn traffic(mut traffic: TrafficPlan, source: SourceSpec) -> Self {
        let mut plan = Self::new(Config::new(traffic.config.senders.count, traffic.config.receivers.count), source);
        traffic.config.senders = plan.building.readout_nodes();
        traffic.config.receivers = plan.building.builder_nodes();
        plan.workload = Workload::Traffic(traffic);
        plan.on_network(DEFAULT_NETWORK).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    /// The same plan on the network of a preset, with a host for each of its nodes.
    ///
    /// # Errors
    /// The preset is unknown, or has fewer hosts than there are nodes.
    pub fn on_network(self, preset: &str) -> Result<Self, Diagnostics> {
        let mut root = self.nodes();
        root.put(&["network", "preset"], None, Value::Text(preset.to_owned()).into());
        self.on(root).map_err(diagnostics)
    }

    /// The same plan on the network of a file, with a host for each of its nodes.
    ///
    /// # Errors
    /// The file is not good, or its network has fewer hosts than there are nodes.
    pub fn on_network_of(self, file: &Other) -> Result<Self, Diagnostics> {
        let mut root = self.nodes();
        let replaced = parse::other(&file.text, 1).and_then(|network| network::preset::replace(&mut root, network));
        replaced.and_then(|()| self.on(root)).map_err(|problems| {
            Diagnostics::new(PLAN, problems, &Texts::new(PLAN, "", &[]).and(&file.name, &file.text))
        })
    }

    /// The same plan on the network of a tree.
    fn on(mut self, root: Node) -> Result<Self, Vec<Problem>> {
        let root = check(&filled(root))?;
        let mut known = KnownNetwork::default();
        match network::rules::check(View(&root), &mut known) {
            problems if problems.is_empty() => self.network = network::plan(View(&root), &known),
            problems => return Err(problems),
        }
        Ok(self)
    }

    /// The tree that defines the nodes, and nothing else.
    fn nodes(&self) -> Node {
        // Any traffic will do: its network is that of nodes without an event manager.
        nodes(&self.building, if self.workload == Workload::EventBuilding { EVENT_BUILDING } else { "pairs" })
    }

    /// The same plan with another seed of all random streams.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self.filter.seed = seed;
        self.building.protocol = self.building.protocol.with_seed(seed);
        if let Workload::Traffic(traffic) = &mut self.workload {
            traffic.config.seed = seed;
        }
        self
    }
}

/// The tree that defines the numbers of units and their workload.
fn nodes(building: &Config, workload: &str) -> Node {
    let mut root = Node::from(Value::Table(Table::default()));
    root.put(&["readout", "units"], None, Value::Integer(building.readout_units.into()).into());
    root.put(&["builder", "units"], None, Value::Integer(building.builder_units.into()).into());
    root.put(&["workload", "type"], None, Value::Text(workload.to_owned()).into());
    root
}

/// The tree with all defaults that follow from others.
fn filled(mut root: Node) -> Node {
    data::anchor(&mut root, "");
    sections::fill(&mut root, "");
    root
}

fn diagnostics(problems: Vec<Problem>) -> Diagnostics {
    Diagnostics::new(PLAN, problems, &Texts::new(PLAN, "", &[]))
}
