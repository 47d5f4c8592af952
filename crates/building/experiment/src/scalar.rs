//! Checks single values against the kind of their key.

use crate::{
    diagnostics::Problem,
    limits::{MAX_NAME, MAX_PATH},
    schema::{Key, KeyKind, preset_names, quoted},
    tree::{Node, Table, Value},
};
use evb_core::{Bandwidth, ByteCount, Frequency, QuantityError, Span};
use std::{fmt::Display, str::FromStr};

/// Checks the value of `key` at `path`; returns the problem if there is one.
pub(crate) fn check(key: &Key, node: &Node, path: &str) -> Option<Problem> {
    let outcome = match (&key.kind, &node.value) {
        (KeyKind::Integer { min, max }, &Value::Integer(number)) => in_range(&number, min, max),
        (KeyKind::IntegerOr { min, max, .. }, &Value::Integer(number)) => in_range(&number, min, max),
        (KeyKind::IntegerOr { word, .. }, Value::Text(text)) => one_of(text, [*word].into_iter()),
        (KeyKind::Number { min, max }, &Value::Number(number)) => in_range(&number, min, max),
        (KeyKind::Number { min, max }, &Value::Integer(number)) => in_range(&(number as f64), min, max),
        (KeyKind::Bytes { min, max }, Value::Text(text)) => quantity::<ByteCount>(text, min, max, key),
        (KeyKind::Time { min, max }, Value::Text(text)) => quantity::<Span>(text, min, max, key),
        (KeyKind::Rate { min, max }, Value::Text(text)) => quantity::<Frequency>(text, min, max, key),
        (KeyKind::Bandwidth { min, max }, Value::Text(text)) => quantity::<Bandwidth>(text, min, max, key),
        (KeyKind::Flag, Value::Flag(_)) => Ok(()),
        (KeyKind::Preset, Value::Text(text)) => one_of(text, preset_names()),
        (KeyKind::Integers { min, max, most }, Value::List(items)) => integers(items, *min, *max, *most),
        (KeyKind::Range, Value::List(items)) => range(items),
        (KeyKind::Names { least, most }, Value::List(items)) => names(items, *least, *most),
        (KeyKind::Word(words), Value::Text(text)) => one_of(text, words.all().into_iter().map(|(name, _)| name)),
        (KeyKind::Name, Value::Text(text)) => name(text),
        (KeyKind::Path, Value::Text(text)) => file_path(text),
        (KeyKind::Address, Value::Text(text)) => address(text),
        (KeyKind::Unit, Value::Text(text)) => unit(text).map(|_| ()).ok_or_else(unit_fault),
        (KeyKind::Keep { .. }, Value::Text(text)) => {
            Err(fault(format!("cannot be {}", brief(text)), "unknown", format!("write {}", key.kind.describe())))
        }
        (KeyKind::Text, Value::Text(_)) => Ok(()),
        (KeyKind::Free { most }, Value::Table(table)) => free(table, *most),
        _ => Err(wrong_type(key, node)),
    };
    let Fault { what, help, label } = outcome.err()?;
    Some(Problem::new(format!("`{path}` {what}"), help).at(node.origin, label))
}

/// A fault of a value: the rest of the sentence that begins with the key.
struct Fault {
    what: String,
    help: String,
    label: String,
}

fn fault(what: impl Into<String>, label: impl Into<String>, help: impl Into<String>) -> Fault {
    Fault { what: what.into(), help: help.into(), label: label.into() }
}

/// A node's name in the file, split: the kind of unit and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitName {
    Manager,
    Readout(u32),
    Builder(u32),
}

/// Reads `evm`, `ru3` or `bu0`.
pub(crate) fn unit(text: &str) -> Option<UnitName> {
    // Only the usual way to write a number, so that every node has one name.
    let index = |digits: &str| digits.parse::<u32>().ok().filter(|number| number.to_string() == digits);
    match text.split_at_checked(2)? {
        _ if text == "evm" => Some(UnitName::Manager),
        ("ru", digits) => index(digits).map(UnitName::Readout),
        ("bu", digits) => index(digits).map(UnitName::Builder),
        _ => None,
    }
}

fn unit_fault() -> Fault {
    fault(
        "is not the name of a node",
        "no such node",
        "write `evm` for the event manager, `ru0`, `ru1` and so on for readout units, `bu0` and so on for builder units",
    )
}

fn in_range<T: PartialOrd + Display>(value: &T, min: &T, max: &T) -> Result<(), Fault> {
    if value >= min && value <= max { Ok(()) } else { Err(out_of_range(&value.to_string(), value > max, min, max)) }
}

fn out_of_range<T: Display>(value: &str, is_above: bool, min: &T, max: &T) -> Fault {
    let bound = if is_above { format!("{max} or less") } else { format!("{min} or more") };
    fault(format!("is {value}, which is out of range"), format!("must be {bound}"), format!("write {bound}"))
}

fn quantity<T>(text: &str, min: &T, max: &T, key: &Key) -> Result<(), Fault>
where
    T: FromStr<Err = QuantityError> + PartialOrd + Display,
{
    let shown = brief(text);
    let write = format!("write {}, such as {} = {}", key.kind.describe(), key.name, key.kind.example());
    match text.parse::<T>() {
        Ok(value) if value >= *min && value <= *max => Ok(()),
        Ok(value) => Err(out_of_range(&shown, value > *max, min, max)),
        Err(QuantityError::NotANumber { .. }) => {
            Err(fault(format!("is {shown}, which does not start with a number"), "no number", write))
        }
        Err(QuantityError::NoUnit { .. }) => {
            Err(fault(format!("is {shown}, which has no unit"), "the unit is missing", write))
        }
        Err(QuantityError::WrongUnit { unit, known, .. }) => {
            let what = format!("is {shown}, but {} is not a unit of {}", brief(&unit), short_kind(&key.kind));
            Err(fault(what, "wrong unit", format!("the units are {known}; {write}")))
        }
        Err(QuantityError::OutOfRange { .. }) => {
            Err(out_of_range(&shown, !text.trim_start().starts_with('-'), min, max))
        }
    }
}

fn short_kind(kind: &KeyKind) -> &'static str {
    match kind {
        KeyKind::Bytes { .. } => "a byte count",
        KeyKind::Time { .. } => "a time",
        KeyKind::Rate { .. } => "a frequency",
        KeyKind::Bandwidth { .. } => "a bandwidth",
        _ => kind.describe(),
    }
}

fn one_of(text: &str, names: impl Iterator<Item = &'static str> + Clone) -> Result<(), Fault> {
    if names.clone().any(|name| name == text) {
        return Ok(());
    }
    let near = closest(text, names.clone()).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
    let known = format!("{near}this version has {}", quoted(names));
    Err(fault(format!("cannot be {}", brief(text)), "unknown", known))
}

fn integers(items: &[Node], min: i64, max: i64, most: usize) -> Result<(), Fault> {
    has_length(items, 0, most)?;
    for (index, item) in items.iter().enumerate() {
        let Some(number) = item.integer() else {
            return Err(not_an_item(index, "a whole number", "[0, 1, 0]"));
        };
        if !(min..=max).contains(&number) {
            let what = format!("has the number {number} at place {index}, which is out of range");
            return Err(fault(what, "out of range", format!("write whole numbers of {min} to {max}")));
        }
    }
    Ok(())
}

/// Two finite numbers whose distance is finite, too, the lower one first.
fn range(items: &[Node]) -> Result<(), Fault> {
    has_length(items, 2, 2)?;
    let number = |(index, item): (usize, &Node)| match item.value {
        Value::Integer(number) => Ok(number as f64),
        Value::Number(number) => Ok(number),
        _ => Err(not_an_item(index, "a number", "[0, 100]")),
    };
    let ends: Vec<f64> = items.iter().enumerate().map(number).collect::<Result<_, _>>()?;
    let width = ends[1] - ends[0];
    match width > 0.0 && width.is_finite() {
        true => Ok(()),
        false => Err(fault("is not a range", "no range", "write the lower end first, and finite numbers: [0, 100]")),
    }
}

fn names(items: &[Node], least: usize, most: usize) -> Result<(), Fault> {
    has_length(items, least, most)?;
    for (index, item) in items.iter().enumerate() {
        let Some(text) = item.text() else {
            return Err(not_an_item(index, "a text", "[\"a\", \"b\"]"));
        };
        if text.is_empty() || text.chars().count() > MAX_NAME {
            let help = format!("write names of 1 to {MAX_NAME} characters");
            return Err(fault(format!("has {} at place {index}", brief(text)), "not a name", help));
        }
    }
    Ok(())
}

fn has_length(items: &[Node], least: usize, most: usize) -> Result<(), Fault> {
    let count = items.len();
    if (least..=most).contains(&count) {
        return Ok(());
    }
    let wanted = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    Err(fault(format!("has {count} values, not {wanted}"), "wrong length", format!("write {wanted} values")))
}

fn not_an_item(index: usize, what: &str, example: &str) -> Fault {
    let help = format!("every value of the list must be {what}, such as {example}");
    fault(format!("has something else than {what} at place {index}"), "not all of one kind", help)
}

/// A table for others: evb bounds it, and does not know its keys.
fn free(table: &Table, most: usize) -> Result<(), Fault> {
    if table.0.len() > most {
        let help = format!("leave some out: {most} are possible");
        return Err(fault(format!("has {} keys, more than {most}", table.0.len()), "too many", help));
    }
    let odd = table.0.iter().find(|entry| entry.key.is_empty() || entry.key.contains(char::is_control));
    if let Some(entry) = odd {
        return Err(fault(
            format!("has the key {}", brief(&entry.key)),
            "not a name",
            "write names without control characters",
        ));
    }
    let is_plain = |node: &Node| match &node.value {
        Value::Text(_) | Value::Integer(_) | Value::Flag(_) => true,
        Value::Number(number) => number.is_finite(),
        _ => false,
    };
    match table.0.iter().find(|entry| !is_plain(&entry.node)) {
        None => Ok(()),
        Some(entry) => {
            let what = format!("has something else than a text, a finite number or a flag at {}", brief(&entry.key));
            Err(fault(what, "not a plain value", "write values such as \"high\", 12, 0.5 or true"))
        }
    }
}

fn name(text: &str) -> Result<(), Fault> {
    let odd = |c: char| c.is_control() || c == '/';
    let length = text.chars().count();
    if length == 0 || length > MAX_NAME || text.contains(odd) {
        let help = format!("write 1 to {MAX_NAME} characters without `/`: the name becomes part of file names");
        return Err(fault(format!("cannot be {}", brief(text)), "not a name", help));
    }
    Ok(())
}

fn file_path(text: &str) -> Result<(), Fault> {
    if text.is_empty() || text.len() > MAX_PATH || text.contains(char::is_control) {
        let help = format!("write 1 to {MAX_PATH} bytes, without control characters");
        return Err(fault(format!("cannot be {}", brief(text)), "not a path", help));
    }
    let mut rest = text;
    while let Some((_, tail)) = rest.split_once("${") {
        let Some((_, after)) = tail.split_once('}').filter(|(name, _)| is_variable(name)) else {
            let help = "an environment variable is written ${NAME}, with letters, digits and `_`";
            return Err(fault("has a `${` without a name and `}`", "not a variable", help));
        };
        rest = after;
    }
    Ok(())
}

fn is_variable(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(good)
}

fn address(text: &str) -> Result<(), Fault> {
    let good_host = |host: &str| !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
    let parts = text.rsplit_once(':').filter(|(host, _)| good_host(host) && text.len() <= MAX_PATH);
    match parts.and_then(|(_, port)| port.parse::<u16>().ok()) {
        Some(_) => Ok(()),
        None => Err(fault(
            format!("cannot be {}", brief(text)),
            "not host:port",
            "write a host, a colon and a port of 0 to 65535, such as \"127.0.0.1:9000\"",
        )),
    }
}

/// The value has another TOML type than the key takes.
fn wrong_type(key: &Key, node: &Node) -> Fault {
    let found = match &node.value {
        Value::Text(_) => "a text",
        Value::Integer(_) | Value::Number(_) => "a number",
        Value::List(_) => "a list",
        Value::Table(_) => "a table",
        Value::Flag(_) => "true or false",
        Value::Other(what) => what,
    };
    let wanted = key.kind.describe();
    let bare = match node.value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match (unit_of(&key.kind), bare, node.text()) {
        (Some(unit), Some(number), _) => fault(
            format!("is the bare number {number}, without a unit"),
            "the unit is missing",
            format!("write {wanted}, in quotes, such as {} = \"{number} {unit}\"", key.name),
        ),
        (_, _, Some(text)) if matches!(key.kind, KeyKind::Integer { .. }) && text.parse::<i64>().is_ok() => fault(
            format!("must be {wanted}, not a text"),
            "a text",
            format!("leave out the quotes: {} = {text}", key.name),
        ),
        _ => fault(
            format!("must be {wanted}, not {found}"),
            found,
            format!("write {wanted}, such as {} = {}", key.name, key.kind.example()),
        ),
    }
}

const fn unit_of(kind: &KeyKind) -> Option<&'static str> {
    match kind {
        KeyKind::Bytes { .. } => Some("B"),
        KeyKind::Time { .. } => Some("s"),
        KeyKind::Rate { .. } => Some("Hz"),
        KeyKind::Bandwidth { .. } => Some("bit/s"),
        _ => None,
    }
}

/// A text in quotes, cut when it is long.
pub(crate) fn brief(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The name that is closest to `text`, if one is close.
pub(crate) fn closest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > 64 {
        return None;
    }
    let text = text.to_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::osa_distance(&text, &name.replace('-', "_"));
    let allowed = (text.len() / 3).max(1);
    names.map(|name| (distance(name), name)).filter(|(d, _)| *d <= allowed).min_by_key(|(d, _)| *d).map(|(_, n)| n)
}
