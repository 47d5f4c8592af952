//! `network.placement`: the hosts of the nodes.

use super::{control, planes, topology::CROSSBAR};
use crate::{
    limits::*,
    plan::Placement,
    schema::*,
    sections::{background, workload},
    tree::{Node, Table, Value},
    view::View,
};

pub(super) const PLACEMENT: &[Key] = &[
    optional(
        "manager",
        integer(0, MAX_COUNT),
        "host of the event manager, 0 by default; it needs none for traffic, or if control is separate",
    ),
    key(
        "readout",
        integer(0, MAX_COUNT),
        KeyDefault::Derived("1, or 0 without a manager"),
        "host of the first readout unit",
    ),
    key(
        "builder",
        integer(0, MAX_COUNT),
        KeyDefault::Derived("the host after the last readout unit"),
        "host of the first builder unit; hosts may be shared by units of different kinds",
    ),
];

/// The hosts of the first unit of each kind.
pub(in crate::sections) fn plan(view: View<'_>) -> Placement {
    let placement = view.below("network.placement");
    Placement {
        manager: has_manager(view.0).then(|| placement.integer("manager")),
        readout: placement.integer("readout"),
        builder: placement.integer("builder"),
    }
}

/// True if the event manager is on the network: it exists, and control goes through it.
pub(super) fn has_manager(root: &Node) -> bool {
    control::is_shared(root) && workload::is_event_building(root)
}

/// Gives the nodes their hosts, and a crossbar without a number of ports as many as these have.
pub(super) fn fill(root: &mut Node) {
    if root.at("network.placement").is_none() {
        root.put(&["network", "placement"], None, Value::Table(Table::default()).into());
    }
    let hosts = hosts(root);
    let is_crossbar = root.at("network.topology.type").and_then(Node::text) == Some(CROSSBAR);
    if is_crossbar && root.at("network.topology.ports").is_none() {
        let each = root.at("network.nic.ports").and_then(Node::integer).unwrap_or(1);
        // Each plane has a switch of its own.
        let each = (each / planes::count(root)).clamp(1, MAX_PORTS);
        let ports = hosts.clamp(1, MAX_COUNT / each) * each;
        root.put(&["network", "topology", "ports"], None, Value::Integer(ports).into());
    }
}

/// The number of hosts that the nodes and background traffic need.
fn hosts(root: &mut Node) -> i64 {
    let has_manager = has_manager(root);
    let units = |path: &str| root.at(path).and_then(Node::integer).unwrap_or(1).clamp(1, MAX_UNITS);
    let (readouts, builders) = (units("readout.units"), units("builder.units"));
    let manager = if has_manager { first(root, "manager", 0) + 1 } else { 0 };
    let after_readouts = first(root, "readout", i64::from(has_manager)) + readouts;
    let after_builders = first(root, "builder", after_readouts) + builders;
    background::fill(root, manager.max(after_readouts).max(after_builders))
}

/// The host of the first unit of a kind, which is `default` when the file does not say.
fn first(root: &mut Node, kind: &str, default: i64) -> i64 {
    if root.at("network.placement").is_some_and(|placement| placement.table().is_some())
        && root.at("network.placement").and_then(|placement| placement.at(kind)).is_none()
    {
        root.put(&["network", "placement", kind], None, Value::Integer(default.min(MAX_COUNT)).into());
    }
    let path = format!("network.placement.{kind}");
    root.at(&path).and_then(Node::integer).unwrap_or(default).clamp(0, MAX_COUNT)
}
