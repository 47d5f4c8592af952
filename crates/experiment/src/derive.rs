//! Defaults that follow from other keys. They look at the tree as it was written: what is not as it should be there is
//! left for the checks to report.

use crate::{
    limits::{DEFAULT_BUFFER_EVENTS, DEFAULT_GROUP, MAX_BUFFER_EVENTS, MAX_NAME, MAX_UNITS},
    preset,
    tree::{Node, Value},
};

/// Fills in the derived defaults that can be told. `stem` is the name of the file without its ending.
pub(crate) fn fill(root: &mut Node, stem: &str) {
    let name: String = stem.chars().filter(|c| !c.is_control() && *c != '/').take(MAX_NAME).collect();
    let name = if name.is_empty() { "experiment".to_owned() } else { name };
    put(root, &["name"], Value::Text(name));
    if let Some(units) = root.at("readout.unit").and_then(Node::list).map(<[Node]>::len) {
        put(root, &["readout", "units"], Value::Integer(i64::try_from(units).unwrap_or(i64::MAX)));
    }
    let builders = root.at("builder.units").and_then(Node::integer).unwrap_or(1).clamp(1, MAX_UNITS);
    if matches!(root.at("protocol.type").map(Node::text), None | Some(Some("push"))) {
        put(root, &["protocol", "group"], Value::Integer(builders.max(DEFAULT_GROUP)));
    }
    let slots = root.at("builder.slots").map_or(Some(64), Node::integer).unwrap_or(1);
    let enough = builders.saturating_mul(slots).saturating_mul(2).clamp(DEFAULT_BUFFER_EVENTS, MAX_BUFFER_EVENTS);
    put(root, &["readout", "buffer_events"], Value::Integer(enough));
    let trigger = if has_data(root) { "data" } else { "free-running" };
    put(root, &["trigger", "type"], Value::Text(trigger.to_owned()));
    preset::fill(root);
}

/// Puts a value where there is none.
fn put(root: &mut Node, path: &[&str], value: Value) {
    let parent = path.first().filter(|_| path.len() > 1).and_then(|section| root.at(section));
    let is_table = parent.is_none_or(|node| node.table().is_some());
    if is_table && root.at(&path.join(".")).is_none() {
        root.put(path, None, value.into());
    }
}

/// Whether a source is recorded or live.
fn has_data(root: &Node) -> bool {
    let units = root.at("readout.unit").and_then(Node::list).unwrap_or(&[]);
    let is_data =
        |source: &Node| matches!(source.at("type").and_then(Node::text), Some("cms-fed" | "trace" | "tcp" | "udp"));
    let count = root.at("readout.units").and_then(Node::integer).unwrap_or(0);
    let shared = root.at("readout.source").filter(|_| i64::try_from(units.len()).is_ok_and(|given| given < count));
    units.iter().filter_map(|unit| unit.at("source")).chain(shared).any(is_data)
}
