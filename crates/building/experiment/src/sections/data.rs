//! `[data]`: the folder of the data files. A relative one in the file starts at the file's folder, one in a `--set` where
//! the user is.

use crate::{
    schema::*,
    tree::{Node, Table, Value},
};
use std::path::Path;

pub(super) const DATA: &[Key] = &[key(
    "directory",
    KeyKind::Path,
    KeyDefault::Derived("the folder of the experiment file"),
    "folder that relative data files start from; itself relative to the folder of the experiment file (given by `--set`: \
     to the working folder)",
)];

/// Joins `data.directory` with the folder of the experiment file.
pub(crate) fn anchor(root: &mut Node, folder: &str) {
    if let Value::Table(table) = &mut root.value {
        if table.get("data").is_none() {
            table.push("data", Value::Table(Table::default()).into());
        }
        table.get_mut("data").into_iter().for_each(|data| section(data, folder));
    }
}

/// Puts the folder in front of a value of a sweep in the same way.
pub(crate) fn anchor_swept(path: &str, value: &mut Node, folder: &str) {
    match path {
        "data" => section(value, folder),
        "data.directory" => directory(value, folder),
        _ => {}
    }
}

/// Joins the directory of `[data]`; without one it is the folder itself.
fn section(data: &mut Node, folder: &str) {
    let Value::Table(table) = &mut data.value else { return };
    match table.get_mut("directory") {
        Some(node) => directory(node, folder),
        None => table.push("directory", Value::Text(or_here(folder)).into()),
    }
}

fn directory(node: &mut Node, folder: &str) {
    let from_command_line = node.origin.is_some_and(|origin| origin.text > 0);
    let Value::Text(written) = &mut node.value else { return };
    if from_command_line || written.is_empty() || written.starts_with("${") {
        return;
    }
    *written = match &**written {
        "." => or_here(folder),
        // An absolute path stays as it is.
        _ => Path::new(folder).join(&*written).to_string_lossy().into_owned(),
    };
}

fn or_here(folder: &str) -> String {
    if folder.is_empty() { ".".to_owned() } else { folder.to_owned() }
}
