//! The defaults of `[network]`: a preset lies below what the file says, and the nodes get their hosts.

use super::{placement, planes, preset_keys::DEFAULT_NETWORK};
use crate::{
    diagnostics::Problem,
    tree::{Node, Table, Value, table},
};
use toml::de::DeTable;

/// The tables that an experiment keeps when another `[network]` replaces its own.
const KEPT: [&str; 2] = ["placement", "fault"];

/// Puts the network of another file, which holds a `[network]` and nothing else, in the place of the experiment's.
pub(crate) fn replace(root: &mut Node, other: Node) -> Result<(), Vec<Problem>> {
    let help = "write all keys below [network], as in the files of `evb bench --fit`";
    let Value::Table(mut other) = other.value else { return Ok(()) };
    if let Some(entry) = other.0.iter().find(|entry| entry.key != "network") {
        let problem = Problem::new(format!("{:?} has no place in the file of a network", entry.key), help);
        return Err(vec![problem.at(entry.key_origin, "not about the network")]);
    }
    let Some(Value::Table(mut network)) = other.take("network").map(|node| node.value) else {
        return Err(vec![Problem::new("the file of the network has no [network]", help)]);
    };
    let Value::Table(file) = &mut root.value else { return Ok(()) };
    if let Some(Value::Table(mut own)) = file.take("network").map(|node| node.value) {
        KEPT.iter().for_each(|key| _ = own.take(key).map(|node| network.push(key, node)));
    }
    file.push("network", Value::Table(network).into());
    Ok(())
}

/// Fills in all of `[network]` that the file does not say. The number of readout units must be in the tree by now.
pub(crate) fn fill(root: &mut Node) {
    let name = root.at("network.preset").and_then(Node::text).unwrap_or(DEFAULT_NETWORK);
    // A preset that there is not is one problem, for the checks to report.
    let mut preset = parsed(name).or_else(|| parsed(DEFAULT_NETWORK)).unwrap_or_default();
    if let Some(Value::Table(topology)) = preset.get_mut("topology").map(|node| &mut node.value) {
        if name == DEFAULT_NETWORK {
            topology.take("ports");
        }
        if root.at("network.topology.levels").is_some() {
            topology.take("radix");
        }
    }
    planes::fill(root);
    let Value::Table(file) = &mut root.value else { return };
    if file.get("network").is_none() {
        file.push("network", Value::Table(Table::default()).into());
    }
    let Some(Value::Table(network)) = file.get_mut("network").map(|node| &mut node.value) else { return };
    underlay(network, preset);
    placement::fill(root);
}

/// The table of a preset, written nowhere.
fn parsed(name: &str) -> Option<Table> {
    let parsed = DeTable::parse(evb_fabric::preset(name)?.toml).ok()?;
    let root = Node::from(Value::Table(table(parsed.get_ref(), 0, 0, 0)));
    root.unplaced().table().cloned()
}

/// Puts the values of a preset where the file has none. A table with another tag than the preset's gets nothing.
fn underlay(file: &mut Table, preset: Table) {
    for entry in preset.0 {
        match (file.get_mut(&entry.key).map(|node| &mut node.value), entry.node.value) {
            (None, value) => file.push(&entry.key, value.into()),
            (Some(Value::Table(written)), Value::Table(below)) if has_same_tag(written, &below) => {
                underlay(written, below);
            }
            _ => {}
        }
    }
}

fn has_same_tag(written: &Table, below: &Table) -> bool {
    written.get("type").is_none_or(|tag| Some(tag) == below.get("type"))
}
