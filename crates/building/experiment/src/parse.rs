//! Parses text into a tree: the file itself, and then the values of `--set`.

use crate::{
    diagnostics::Problem,
    limits::{MAX_FILE, MAX_FOUND, MAX_OVERRIDE, MAX_OVERRIDES},
    scalar::brief,
    schema::{Key, KeyKind},
    sections::FILE,
    suggest::for_key,
    tree::{self, Node, Origin, Value},
};
use evb_core::ByteCount;
use toml::de::{DeTable, DeValue};

/// Reads the text of the file.
pub(crate) fn file(text: &str) -> Result<Node, Vec<Problem>> {
    other(text, 0)
}

/// Reads the text of a file, which has this index among the texts.
pub(crate) fn other(text: &str, index: usize) -> Result<Node, Vec<Problem>> {
    if text.len() as u64 > MAX_FILE.0 {
        return Err(vec![too_large(MAX_FILE)]);
    }
    let (parsed, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let table = tree::table(parsed.get_ref(), index, 0, 0);
        return Ok(Node { origin: None, value: Value::Table(table) });
    }
    Err(errors.iter().take(MAX_FOUND).map(|error| syntax(error, text, index)).collect())
}

/// The file is above its limit.
pub(crate) fn too_large(limit: ByteCount) -> Problem {
    let help = "an experiment file holds keys only: keep sizes and data in separate files";
    Problem::new(format!("the experiment file is larger than {limit}"), help)
}

fn syntax(error: &toml::de::Error, text: &str, index: usize) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let end = span.end.min(text.len());
    let origin = Origin::new(index, span.start.min(end)..end);
    let written = text.get(span.start.min(end)..end).unwrap_or("").trim();
    if error.message() == "duplicate key" {
        let problem = Problem::new(format!("the key {written:?} is given twice"), "remove one of the two");
        return problem.at(Some(origin), "given again here");
    }
    let help = "a line is `key = value`, with texts and quantities in quotes, such as rate = \"50 kHz\"";
    Problem::new(format!("not TOML: {}", error.message()), help).at(Some(origin), "here")
}

/// Applies each `--set key.path=value`, and returns the paths that were set.
pub(crate) fn overrides(root: &mut Node, texts: &[String]) -> Result<Vec<String>, Vec<Problem>> {
    if texts.len() > MAX_OVERRIDES {
        let message = format!("{} times --set is more than {MAX_OVERRIDES}", texts.len());
        return Err(vec![Problem::new(message, "put the values into a file")]);
    }
    let (mut paths, mut problems) = (Vec::new(), Vec::new());
    for (index, text) in texts.iter().enumerate() {
        match set(root, text, index + 1) {
            Ok(path) => paths.push(path),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(paths) } else { Err(problems) }
}

fn set(root: &mut Node, text: &str, index: usize) -> Result<String, Problem> {
    let whole = Some(Origin::new(index, 0..text.len()));
    let malformed = |what: &str| {
        let help =
            "write --set key.path=value, such as --set trigger.events=1000 or --set readout.source.mean=\"2 kB\"";
        Problem::new(format!("{} {what}", brief(text)), help).at(whole, "not key=value")
    };
    if text.len() as u64 > MAX_OVERRIDE.0 {
        return Err(malformed(&format!("is longer than {MAX_OVERRIDE}")));
    }
    let (left, right) = text.split_once('=').ok_or_else(|| malformed("has no `=`"))?;
    let steps = steps(left).ok_or_else(|| malformed("does not begin with a key"))?;
    let key_end = left.trim_end().len();
    let key_origin = Some(Origin::new(index, left.len() - left.trim_start().len()..key_end));
    let path = steps.join(".");
    let value = right.trim();
    if value.is_empty() {
        return Err(malformed("has no value"));
    }
    // The paths of a sweep are checked with those of the file.
    if steps[0] != "sweep" {
        known(&path).map_err(|(message, help)| Problem::new(message, help).at(key_origin, "unknown key"))?;
    }
    let start = left.len() + 1 + right.len() - right.trim_start().len();
    let node = value_node(value, index, start);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    if root.put(&steps, key_origin, node) {
        return Ok(path);
    }
    let help = "a list is counted from 0, and can be changed but not made longer this way";
    Err(Problem::new(format!("`{path}` leads past the end of a list"), help).at(key_origin, "no such table"))
}

/// The value of a `--set`: TOML if it parses, else a text, because shells remove quotes.
fn value_node(value: &str, index: usize, start: usize) -> Node {
    let span = 0..value.len();
    match DeValue::parse(value) {
        Ok(parsed) => tree::node(parsed.get_ref(), span, index, start, 0),
        Err(_) => {
            Node { origin: Some(Origin::new(index, start..start + value.len())), value: Value::Text(value.to_owned()) }
        }
    }
}

/// The steps of a dotted key.
fn steps(left: &str) -> Option<Vec<String>> {
    let line = format!("{left}=0");
    let table = DeTable::parse(&line).ok()?;
    let (mut table, mut steps) = (table.get_ref(), Vec::new());
    loop {
        let (key, value) = table.iter().next()?;
        steps.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(steps),
        }
    }
}

/// Checks that the table of keys has a path; else returns the problem, with a suggestion.
pub(crate) fn known(path: &str) -> Result<(), (String, String)> {
    let unknown = |help: String| (format!("unknown key {}", brief(path)), help);
    let (mut kinds, mut place) = (vec![&FILE], String::new());
    for step in path.split('.') {
        let next: Vec<_> = kinds.iter().flat_map(|kind| below(kind, step)).collect();
        if next.is_empty() {
            let names = kinds.iter().flat_map(|kind| names(kind)).collect();
            return Err(unknown(match kinds[0] {
                KeyKind::List { .. } => format!("write the number of the table: {place}.0"),
                _ => for_key(step, names, &place),
            }));
        }
        kinds = next;
        place = if place.is_empty() { step.to_owned() } else { format!("{place}.{step}") };
    }
    Ok(())
}

/// The kinds of value that a step leads to: several if variants of a choice have different keys of one name.
fn below(kind: &'static KeyKind, step: &str) -> Vec<&'static KeyKind> {
    match kind {
        KeyKind::Like { table, .. } => below(table, step),
        KeyKind::List { item, .. } if step.parse::<usize>().is_ok() => vec![item],
        KeyKind::List { .. } => Vec::new(),
        KeyKind::Choice(choice) if choice.tag() == step => vec![&KeyKind::Text],
        _ => {
            let named = |key: &&Key| key.name == step && !matches!(key.kind, KeyKind::Sweep);
            kind.keys().into_iter().filter(named).map(|key| &key.kind).collect()
        }
    }
}

/// The names of the keys below a key.
fn names(kind: &KeyKind) -> Vec<&'static str> {
    let tag = match kind {
        KeyKind::Choice(choice) => Some(choice.tag()),
        KeyKind::Like { table, .. } => return names(table),
        _ => None,
    };
    let keys = kind.keys().into_iter().filter(|key| !matches!(key.kind, KeyKind::Sweep));
    tag.into_iter().chain(keys.map(|key| key.name)).collect()
}
