//! Writes a tree as TOML.

use crate::tree::{Node, Table, Value};

/// The whole file: plain keys first, then the sections.
pub(crate) fn file(root: &Table) -> String {
    let mut text = String::new();
    let is_plain = |node: &Node| node.table().is_none() && !is_list_of_tables(node);
    for entry in root.0.iter().filter(|entry| is_plain(&entry.node)) {
        line(&mut text, &entry.key, &entry.node);
    }
    for entry in root.0.iter().filter(|entry| !is_plain(&entry.node)) {
        match &entry.node.value {
            Value::Table(table) if entry.key == "sweep" => sweep(&mut text, table),
            Value::Table(table) => section(&mut text, &entry.key, table),
            _ => tables(&mut text, &entry.key, &entry.node),
        }
    }
    text
}

/// A value on one line.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::Text(text) => quote(text),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Flag(flag) => flag.to_string(),
        Value::Other(what) => quote(what),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) if table.0.is_empty() => "{}".to_owned(),
        Value::Table(table) => {
            let pairs = table.0.iter().map(|entry| format!("{} = {}", key(&entry.key), inline(&entry.node.value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

fn section(text: &mut String, name: &str, table: &Table) {
    if table.0.is_empty() {
        return;
    }
    text.push_str(&format!("\n[{name}]\n"));
    for entry in table.0.iter().filter(|entry| !is_list_of_tables(&entry.node)) {
        line(text, &entry.key, &entry.node);
    }
    for entry in table.0.iter().filter(|entry| is_list_of_tables(&entry.node)) {
        tables(text, &format!("{name}.{}", entry.key), &entry.node);
    }
}

/// Writes the lists of a sweep as values, even when they hold tables.
fn sweep(text: &mut String, table: &Table) {
    text.push_str("\n[sweep]\n");
    table.0.iter().for_each(|entry| line(text, &entry.key, &entry.node));
}

fn tables(text: &mut String, name: &str, list: &Node) {
    for item in list.list().unwrap_or(&[]) {
        text.push_str(&format!("\n[[{name}]]\n"));
        for entry in item.table().iter().flat_map(|table| &table.0) {
            line(text, &entry.key, &entry.node);
        }
    }
}

fn line(text: &mut String, name: &str, node: &Node) {
    text.push_str(&format!("{} = {}\n", key(name), inline(&node.value)));
}

/// Writes a list of tables with a header for each.
fn is_list_of_tables(node: &Node) -> bool {
    node.list().is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.table().is_some()))
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { name.to_owned() } else { quote(name) }
}

/// A basic string of TOML.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            _ if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
