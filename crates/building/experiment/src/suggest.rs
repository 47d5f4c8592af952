//! "Did you mean": suggestions for misspelt keys and names.

use crate::{
    scalar::closest,
    schema::{Key, KeyKind, coded},
    sections::ROOT,
};
use std::collections::HashSet;

const REMOVED_SOCKET: &str = "frames of Ethernet go through packet sockets, and AF_XDP was removed: leave the key out";
/// Keys of earlier versions: their table, their name, and what is written instead.
const RENAMED: [(&str, &str, &str); 3] = [
    (
        "builder",
        "timeout",
        "an event is not given up any more because its fragments are slow: `patience` says when a builder asks for them, and \
         `deadline` ends an event in time",
    ),
    ("transport", "socket", REMOVED_SOCKET),
    ("control.transport", "socket", REMOVED_SOCKET),
];

/// Help for a key that the table at `path`, which takes `names`, does not have.
pub(crate) fn for_key(name: &str, mut names: Vec<&str>, path: &str) -> String {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    let known = match &*names {
        [] => format!("{} has no keys", table_name(path)),
        _ => format!("the keys of {} are {}", table_name(path), coded(names.iter().copied())),
    };
    if let Some((.., instead)) = RENAMED.iter().find(|(table, old, _)| (*table, *old) == (path, name)) {
        return format!("{instead}; {known}");
    }
    if let Some(near) = closest(name, names.into_iter()) {
        return format!("did you mean `{near}`? {known}");
    }
    match section_with(name, path) {
        Some(section) => format!("`{name}` belongs into {section}; {known}"),
        None => known,
    }
}

/// The name of a table in messages.
pub(crate) fn table_name(path: &str) -> String {
    match path {
        "" => "the file".to_owned(),
        _ if path.contains('.') => format!("`{path}`"),
        _ => format!("[{path}]"),
    }
}

/// The section that has a key of this name.
fn section_with(name: &str, path: &str) -> Option<String> {
    let has = |key: &&Key| key.name != path && key.kind.keys().iter().any(|inner| inner.name == name);
    let section = ROOT.iter().find(has)?;
    Some(match section.kind {
        KeyKind::List { .. } => format!("[[{}]]", section.name),
        _ => format!("[{}]", section.name),
    })
}
