//! `control` at a live source: the connection by which a front end hears run control, and its settings.

use crate::{
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Entry, Node, Value},
    view::View,
};
use evb_core::Span;
use evb_sources::{ControlLink, ControlSpec, Setting};
use std::collections::BTreeMap;

/// Most settings of a front end.
const MOST_SETTINGS: usize = 64;
/// Most bytes of all settings in JSON: they go in one line of 4096 bytes.
const MOST_BYTES: usize = 4000;
/// Most bytes of a number or flag.
const NUMBER_BYTES: usize = 25;
/// Quotes, colon and comma of a setting.
const SIGNS: usize = 6;

pub(super) const CONTROL: &[Key] = &[
    optional("connect", KeyKind::Address, "address at which the front end listens for run control"),
    optional("listen", KeyKind::Address, "address to which the front end connects for run control"),
    key(
        "timeout",
        KeyKind::Time { min: Span::from_millis(1), max: MAX_WAIT },
        KeyDefault::Text("5 s"),
        "longest wait for its connection and its confirmed settings, and for every other answer; below `run.drain_timeout`",
    ),
    optional(
        "settings",
        KeyKind::Free { most: MOST_SETTINGS },
        "what the front end gets before each run, under names of your own: `{ threshold = 12, gain = \"high\" }`",
    ),
];

/// The control connection of a source.
pub(super) fn make(source: View<'_>) -> Option<ControlSpec> {
    let table = source.has("control").then(|| source.below("control"))?;
    let connect = table.maybe_text("connect").map(|address| ControlLink::Connect(address.to_owned()));
    let listen = || table.maybe_text("listen").map(|address| ControlLink::Listen(address.to_owned()));
    Some(ControlSpec { link: connect.or_else(listen)?, timeout: table.quantity("timeout"), settings: settings(table) })
}

fn settings(table: View<'_>) -> BTreeMap<String, Setting> {
    let setting = |entry: &Entry| {
        let value = match &entry.node.value {
            Value::Flag(flag) => Setting::Flag(*flag),
            Value::Integer(number) => Setting::Integer(*number),
            Value::Number(number) => Setting::Number(*number),
            Value::Text(text) => Setting::Text(text.clone()),
            _ => return None,
        };
        Some((entry.key.clone(), value))
    };
    let given = table.0.at("settings").and_then(Node::table);
    given.into_iter().flat_map(|given| &given.0).filter_map(setting).collect()
}

/// Checks the control connection of a source.
pub(super) fn check(view: View<'_>, source: View<'_>) -> Option<Problem> {
    let table = source.has("control").then(|| source.below("control"))?;
    one_link(source, table).or_else(|| timeout(view, table)).or_else(|| size(table))
}

fn one_link(source: View<'_>, table: View<'_>) -> Option<Problem> {
    match (table.has("connect"), table.has("listen")) {
        (true, true) => {
            let problem = Problem::new("both `connect` and `listen` lead to the front end", "keep one of the two");
            Some(problem.at(table.origin("connect"), "one").at(table.origin("listen"), "another"))
        }
        (false, false) => {
            let help =
                "add connect = \"board:9400\" if the front end listens, or listen = \"0.0.0.0:9400\" if it connects";
            let problem = Problem::new("`control` does not say how to reach the front end", help);
            Some(problem.at(source.origin("control"), "no address"))
        }
        _ => None,
    }
}

/// A node that waits for a front end must not be taken for one that stands still.
fn timeout(view: View<'_>, table: View<'_>) -> Option<Problem> {
    let (timeout, drain): (Span, Span) = (table.quantity("timeout"), view.quantity("run.drain_timeout"));
    (timeout >= drain).then(|| {
        let message = format!("`timeout` of {timeout} is not below `run.drain_timeout` of {drain}");
        let help = "lower `timeout`, or raise `drain_timeout` in [run]: a run that ends waits for the front end";
        Problem::new(message, help)
            .at(table.origin("timeout"), "too long")
            .at(view.origin("run.drain_timeout"), "end of a run")
    })
}

/// All settings go in one line.
fn size(table: View<'_>) -> Option<Problem> {
    let value = |value: &Setting| match value {
        Setting::Text(text) => escaped(text),
        _ => NUMBER_BYTES,
    };
    let used: usize = settings(table).iter().map(|(name, given)| escaped(name) + value(given) + SIGNS).sum();
    (used > MOST_BYTES).then(|| {
        let message = format!("the settings take {used} bytes, more than {MOST_BYTES}");
        let help = "keep long tables in a file of the front end, and give it the name of the file";
        Problem::new(message, help).at(table.origin("settings"), "too much")
    })
}

/// Bytes of a text within the quotes of JSON.
fn escaped(text: &str) -> usize {
    let bytes = |letter: char| match letter {
        '"' | '\\' => 2,
        letter if letter.is_ascii_control() => 6,
        letter => letter.len_utf8(),
    };
    text.chars().map(bytes).sum()
}
