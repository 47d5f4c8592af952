//! Makes the [`Plan`] out of a tree that passed every check.

use crate::{
    limits::DEFAULT_GROUP,
    plan::{FaultAction, FaultSpec, Keep, Plan, RunPlan, StoragePlan, TriggerPlan},
    scalar::{UnitName, unit},
    tree::{Node, Value},
    view::View,
};
use evb_core::{NodeId, SourceId, Span};
use evb_protocol::{Assignment, Config, Filter, Protocol, Shaping, Trigger};
use evb_sources::SourceSpec;
use evb_transports::{ALL, TransportChoice, find};

pub(crate) mod network;
mod workload;

/// Makes the plan.
pub(crate) fn plan(root: &Node, sweep: Vec<(String, String)>) -> Plan {
    let view = View(root);
    let building = config(view);
    Plan {
        name: view.text("name").to_owned(),
        description: view.text("description").to_owned(),
        sweep,
        filter: Filter {
            seed: view.integer("run.seed"),
            accept: if view.has("protocol.accept") { view.number("protocol.accept") } else { 1.0 },
        },
        trigger: TriggerPlan {
            rate: view.maybe_quantity("trigger.rate"),
            poisson: view.0.at("trigger.spacing").and_then(Node::text) == Some("poisson"),
            duration: view.maybe_quantity("trigger.duration"),
            accept_loss: view.integer("trigger.accept_loss"),
        },
        sources: (0..usize::from(building.readout_units)).filter_map(|unit| view.source(unit)).map(source).collect(),
        data_directory: view.path("data.directory"),
        transport: transport(view.below("transport")),
        storage: StoragePlan {
            keep: keep(view),
            directory: view.path("storage.directory"),
            file_size: view.quantity("storage.file_size"),
        },
        run: RunPlan {
            seed: view.integer("run.seed"),
            peer_timeout: view.quantity("run.peer_timeout"),
            drain_timeout: view.quantity("run.drain_timeout"),
            workers: view.maybe_integer("run.workers"),
            warmup: view.maybe_quantity("run.warmup"),
        },
        faults: view.list("fault").iter().filter_map(|fault| fault_spec(View(fault), &building)).collect(),
        network: network::plan(view),
        workload: workload::plan(view, &building),
        building,
    }
}

/// The transport with all its settings.
fn transport(view: View<'_>) -> TransportChoice {
    let about = find(view.text("type")).unwrap_or(ALL[0]);
    let value = |name: &'static str| match &view.0.at(name)?.value {
        Value::Text(text) => Some((name.to_owned(), text.clone())),
        Value::Integer(number) => Some((name.to_owned(), number.to_string())),
        _ => None,
    };
    TransportChoice::new(about, about.settings.iter().filter_map(|setting| value(setting.name)).collect())
}

fn config(view: View<'_>) -> Config {
    Config {
        readout_units: view.integer("readout.units"),
        builder_units: view.integer("builder.units"),
        numbered: units(view, |unit| source(unit.0).is_numbered()),
        tolerant: units(view, |unit| unit.0.at("identity").and_then(Node::text) == Some("tolerant")),
        protocol: match view.text("protocol.type") {
            "pull" => Protocol::Pull,
            "phased" => Protocol::Phased { first: view.integer("protocol.first") },
            _ => Protocol::Push,
        },
        assignment: match view.text("protocol.assignment") {
            "least-loaded" => Assignment::LeastLoaded,
            _ => Assignment::RoundRobin,
        },
        shaping: match view.text("shaping.type") {
            "grouping" => {
                Shaping::Grouping { packet: view.quantity("shaping.packet"), timeout: view.quantity("shaping.timeout") }
            }
            "barrel-shifter" => Shaping::BarrelShifter { bucket: view.quantity("shaping.bucket") },
            "rate-division" => Shaping::RateDivision { packet: view.quantity("shaping.packet") },
            _ => Shaping::None,
        },
        trigger: match view.text("trigger.type") {
            "rate" => Trigger::Driven,
            "data" => Trigger::Data,
            _ => Trigger::FreeRunning,
        },
        events: view.maybe_integer("trigger.events"),
        // Who pulls sends no groups; the machines want a valid value all the same.
        group: view
            .maybe_integer("protocol.group")
            .unwrap_or_else(|| view.integer::<u32>("builder.units").max(DEFAULT_GROUP as u32)),
        group_timeout: view.maybe_quantity("protocol.group_timeout").unwrap_or(Span::from_millis(1)),
        builder_slots: view.integer("builder.slots"),
        patience: view.quantity("builder.patience"),
        deadline: view.maybe_quantity("builder.deadline"),
        max_fragment: view.quantity("readout.max_fragment"),
        buffer_events: view.integer("readout.buffer_events"),
        buffer_bytes: view.quantity("readout.buffer_bytes"),
        busy_percent: view.integer("readout.busy"),
        free_percent: view.integer("readout.free"),
    }
}

/// The units whose source is such.
fn units(view: View<'_>, is_such: impl Fn(View<'_>) -> bool) -> Vec<SourceId> {
    let such = |unit: &u16| view.source(usize::from(*unit)).is_some_and(|node| is_such(View(node)));
    (0..view.integer::<u16>("readout.units")).filter(such).map(SourceId).collect()
}

fn source(node: &Node) -> SourceSpec {
    let view = View(node);
    match view.text("type") {
        "fixed" => SourceSpec::Fixed { size: view.quantity("size") },
        "uniform" => SourceSpec::Uniform { min: view.quantity("min"), max: view.quantity("max") },
        "log-normal" => SourceSpec::LogNormal { mean: view.quantity("mean"), rms: view.quantity("rms") },
        "trace" => SourceSpec::Trace { file: view.path("file"), source: view.maybe_integer("source") },
        "size-model" => SourceSpec::SizeModel {
            file: view.path("file"),
            fed: view.maybe_integer("fed"),
            event_size_mean: view.number("event_size_mean"),
            event_size_rms: view.number("event_size_rms"),
        },
        "cms-fed" => SourceSpec::CmsFed { file: view.path("file"), source_id: view.maybe_integer("source_id") },
        "tcp" => SourceSpec::Tcp { listen: view.text("listen").to_owned(), counter_bits: view.integer("counter_bits") },
        _ => SourceSpec::Udp { listen: view.text("listen").to_owned(), counter_bits: view.integer("counter_bits") },
    }
}

fn keep(view: View<'_>) -> Keep {
    match view.maybe_integer("storage.keep.one_in") {
        Some(n) => Keep::OneIn(n),
        None if view.text("storage.keep") == "none" => Keep::None,
        None => Keep::All,
    }
}

/// The node with this name, if the event builder has it.
pub(crate) fn node_id(name: UnitName, readout_units: u16, builder_units: u16) -> Option<NodeId> {
    let within = |index: u32, count: u16| u16::try_from(index).ok().filter(|index| *index < count);
    match name {
        UnitName::Manager => Some(Config::EVENT_MANAGER),
        UnitName::Readout(index) => within(index, readout_units).map(|index| NodeId(1 + index)),
        UnitName::Builder(index) => within(index, builder_units).map(|index| NodeId(1 + readout_units + index)),
    }
}

fn fault_spec(view: View<'_>, config: &Config) -> Option<FaultSpec> {
    let node = node_id(unit(view.text("node"))?, config.readout_units, config.builder_units)?;
    let one_in = || view.integer("one_in");
    let action = match view.text("action") {
        "kill" => FaultAction::Kill { at: view.quantity("at") },
        "corrupt" => FaultAction::Corrupt { one_in: one_in() },
        "duplicate" => FaultAction::Duplicate { one_in: one_in() },
        "lose" => FaultAction::Lose { one_in: one_in() },
        "slow-disk" => FaultAction::SlowDisk { rate: view.quantity("rate") },
        "oversize" => FaultAction::Oversize { one_in: one_in() },
        _ => FaultAction::Delay { one_in: one_in(), by: view.quantity("by") },
    };
    Some(FaultSpec { node, action })
}
