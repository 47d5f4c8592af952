//! The sections of the file, a module for each, with its keys, limits and defaults, the rules on them, and its part of the
//! plan.

use crate::{
    diagnostics::Problem,
    limits::{MAX_BACKGROUNDS, MAX_FAULTS, MAX_FOUND, MAX_MONITORS, MAX_NAME},
    plan::{Plan, StageLink},
    schema::{Key, KeyDefault, KeyKind, key, optional},
    tree::{Node, Value, put_default},
    view::{Rule, View},
};
use evb_core::Span;
use evb_protocol::Config;
use network::KnownNetwork;

mod background;
pub(crate) mod block;
mod builder;
mod bundle;
mod coincidence;
mod control;
pub(crate) mod counts;
pub(crate) mod data;
mod fault;
mod filter;
mod first_stage;
mod framing;
mod front_end_control;
mod links;
mod monitor;
pub(crate) mod network;
mod protocol;
mod readout;
mod run;
mod shaping;
mod slices;
pub(crate) mod source;
mod storage;
mod transport;
mod trigger;
mod workload;

/// The whole file.
pub(crate) static FILE: KeyKind = KeyKind::Section(ROOT);

/// The keys of the whole file.
pub(crate) const ROOT: &[Key] = &[
    key("name", KeyKind::Name, KeyDefault::Derived("the file's name without `.toml`"), "name of the experiment"),
    key("description", KeyKind::Text, KeyDefault::Text(""), "purpose of the experiment, as text for the reader"),
    optional("data", KeyKind::Section(data::DATA), "The place of data files."),
    optional("trigger", KeyKind::Choice(&trigger::TRIGGER), "Start and end of the triggers of the event manager."),
    optional(
        "readout",
        KeyKind::Section(readout::READOUT),
        "The readout units: their number, their sources and their buffers.",
    ),
    optional("builder", KeyKind::Section(builder::BUILDER), "The builder units."),
    optional("first_stage", KeyKind::Section(first_stage::FIRST_STAGE), first_stage::DOC),
    optional(
        "protocol",
        KeyKind::Choice(&protocol::PROTOCOL),
        "The protocol: the side that starts the transfer of fragments.",
    ),
    optional(
        "shaping",
        KeyKind::Choice(&shaping::SHAPING),
        "Traffic shaping: the order and the packing of what readout units send.",
    ),
    optional(
        "transport",
        KeyKind::Choice(&transport::TRANSPORT),
        "The transport between nodes, unless the command line selects another.",
    ),
    optional("control", KeyKind::Section(control::CONTROL), control::DOC),
    optional("filter", KeyKind::Section(filter::FILTER), filter::DOC),
    optional("storage", KeyKind::Section(storage::STORAGE), "The events that are written, and their folder."),
    optional("monitor", KeyKind::List { item: &monitor::TABLE, most: MAX_MONITORS }, monitor::DOC),
    optional("network", KeyKind::Section(network::NETWORK), network::DOC),
    optional("workload", KeyKind::Choice(&workload::WORKLOAD), workload::DOC),
    optional("background", KeyKind::List { item: &background::TABLE, most: MAX_BACKGROUNDS }, background::DOC),
    optional("run", KeyKind::Section(run::RUN), "Seed and limits."),
    optional("fault", KeyKind::List { item: &fault::TABLE, most: MAX_FAULTS }, "Faults injected on purpose."),
    optional("sweep", KeyKind::Sweep, "Keys that take several values."),
];

/// Rules for every experiment.
const EVERY: &[&[Rule]] = &[readout::RULES, bundle::EVERY_RULES, run::RULES, first_stage::RULES];
/// Rules for event building alone.
const EVENT_BUILDING: &[&[Rule]] = &[
    protocol::RULES,
    bundle::PROTOCOL_RULES,
    shaping::RULES,
    control::RULES,
    readout::BUILDING_RULES,
    builder::RULES,
    bundle::RULES,
    trigger::RULES,
    filter::RULES,
];

/// Fills in the defaults that follow from other keys, as far as they are known. The tree is not checked yet:
/// mistakes there are left for the checks to report. `stem` is the name of the file without its ending.
pub(crate) fn fill(root: &mut Node, stem: &str) {
    let name: String = stem.chars().filter(|c| !c.is_control() && *c != '/').take(MAX_NAME).collect();
    put_default(root, &["name"], Value::Text(if name.is_empty() { "experiment".to_owned() } else { name }));
    readout::fill(root);
    framing::fill(root);
    protocol::fill(root);
    trigger::fill(root);
    control::fill(root);
    network::preset::fill(root);
}

/// Checks all rules. `network` is that of the last point of the sweep, and then of this one.
pub(crate) fn check(root: &Node, network: &mut KnownNetwork) -> Result<(), Vec<Problem>> {
    let view = View(root);
    let is_traffic = workload::is_traffic(view);
    let building = if is_traffic { &[] } else { EVENT_BUILDING };
    let rules = EVERY.iter().chain(building).copied().flatten();
    let mut problems: Vec<Problem> = rules.filter_map(|rule| rule(view)).collect();
    // The rules below go through all units, so their number must be good.
    if problems.is_empty() {
        match is_traffic {
            true => {
                problems.extend(workload::rules::check(view));
                problems.extend(monitor::not_in_traffic(view));
            }
            false => {
                problems.extend(trigger::fits_sources(view));
                problems.extend(coincidence::check(view));
                problems.extend(bundle::check(view));
                problems.extend(monitor::check(view));
            }
        }
        problems.extend(source::check(view));
        problems.extend(view.list("fault").iter().filter_map(|node| fault::check(view, View(node))));
        problems.extend(background::check(view));
        problems.extend(network::rules::check(view, network));
    }
    problems.truncate(MAX_FOUND);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Makes the plan out of a tree that passed every check, by which its network is known.
pub(crate) fn plan(root: &Node, sweep: Vec<(String, String)>, network: &KnownNetwork) -> Plan {
    let view = View(root);
    let (building, slicing) = (config(view), readout::slicing(view));
    let mut sources: Vec<_> = source::all(view).map(|table| source::make(table).sliced(slicing)).collect();
    evb_sources::note_shared_links(&mut sources);
    Plan {
        name: view.text("name").to_owned(),
        description: view.text("description").to_owned(),
        sweep,
        filter: filter::plan(view, view.integer("run.seed"), building.protocol),
        trigger: trigger::plan(view),
        sources,
        bundling: bundle::plan(view),
        data_directory: view.path("data.directory"),
        transport: transport::choice_of(view.below("transport")),
        control: control::plan(view),
        storage: storage::plan(view),
        histograms: if workload::is_traffic(view) { Vec::new() } else { monitor::plan(view) },
        run: run::plan(view),
        faults: view.list("fault").iter().filter_map(|node| fault::plan(View(node), &building)).collect(),
        network: network::plan(view, network),
        workload: workload::plan(view, &building),
        background: background::plan(view, &building),
        building,
        link: StageLink::None,
        stages: None,
    }
}

/// The configuration of the machines, which several sections have a part in.
fn config(view: View<'_>) -> Config {
    Config {
        readout_units: view.integer("readout.units"),
        builder_units: view.integer("builder.units"),
        numbered: source::numbered(view),
        tolerant: source::tolerant(view),
        marks: readout::marks(view),
        protocol: protocol::PROTOCOL.make(view.below("protocol")).with_seed(view.integer("run.seed")),
        assignment: protocol::ASSIGNMENT.at(view, "protocol.assignment"),
        shaping: shaping::SHAPING.make(view.below("shaping")),
        trigger: trigger::TRIGGER.make(view.below("trigger")),
        events: view.maybe_integer("trigger.events").map(|events: u64| events.div_ceil(block::block(view.0).0.into())),
        group: protocol::assignment_group(view),
        group_timeout: view.maybe_quantity("protocol.group_timeout").unwrap_or(Span::from_millis(1)),
        request_group: protocol::request_group(view),
        request_order: protocol::request_order(view),
        request_window: protocol::request_window(view),
        builder_slots: builder::most_slots(view),
        first_under_way: builder::first_under_way(view),
        patience: view.quantity("builder.patience"),
        deadline: view.maybe_quantity("builder.deadline"),
        max_fragment: bundle::largest(view),
        buffer_events: view.integer("readout.buffer_events"),
        buffer_bytes: view.quantity("readout.buffer_bytes"),
        busy_percent: view.integer("readout.busy"),
        free_percent: view.integer("readout.free"),
        coincidence: coincidence::plan(view),
    }
}
