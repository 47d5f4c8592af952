//! The experiment that a network is searched for, with other values of some keys.

use crate::{PlannerError, Requirements};
use evb_core::ByteCount;
use evb_experiment::Experiment;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Keys of a source that are sizes of fragments.
pub(crate) const SIZES: [&str; 5] = ["size", "min", "max", "mean", "rms"];
/// Beginnings of the keys that the planner sets.
const OWN: [&str; 6] =
    ["network.topology", "network.link", "network.fault", "trigger.rate", "trigger.duration", "trigger.events"];

/// Ports of a switch that has room for the hosts of any experiment.
const MANY_PORTS: i64 = 10_000;

/// One switch with room for all hosts.
pub(crate) fn one_switch() -> (String, Value) {
    let ports = [("type", Value::from("crossbar")), ("ports", MANY_PORTS.into())];
    (
        "network.topology".to_owned(),
        ports.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Table>().into(),
    )
}

/// The text of the experiment as a tree.
pub(crate) struct Base {
    path: PathBuf,
    table: Table,
}

/// Values of keys, by their paths.
pub(crate) type Changes = Vec<(String, Value)>;

impl Base {
    /// Reads the experiment, with sizes at the upper end of their range.
    pub(crate) fn load(requirements: &Requirements) -> Result<Self, PlannerError> {
        let path = &requirements.experiment;
        let text = Experiment::read(path)?;
        // For the errors, which have the places in the file.
        let (key, value) = one_switch();
        Experiment::parse(&text, &path.to_string_lossy(), &[format!("{key}={value}")])?;
        let mut table: Table =
            toml::from_str(&text).map_err(|error| PlannerError::file(path, error, "see `evb check`"))?;
        if table.contains_key("sweep") {
            return Err(PlannerError::file(
                path,
                "it has a sweep",
                "put the swept keys into `freedom.keys` of the plan",
            ));
        }
        // Both would be those of another network, and of a longer simulation.
        for (section, key) in [("network", "fault"), ("run", "warmup")] {
            table.get_mut(section).and_then(Value::as_table_mut).into_iter().for_each(|inner| drop(inner.remove(key)));
        }
        let factor = requirements.goal.size.high;
        if factor != 1.0 {
            scale_sources(&mut table, factor).map_err(|why| PlannerError::file(path, why, "leave out `goal.size`"))?;
        }
        Ok(Self { path: path.clone(), table })
    }

    /// The value of a key that the file has.
    pub(crate) fn value(&self, path: &str) -> Option<&Value> {
        value_at(&self.table, path)
    }

    /// The experiment with some values changed.
    pub(crate) fn with(&self, changes: &Changes) -> Result<Experiment, PlannerError> {
        let mut table = self.table.clone();
        for (path, value) in changes {
            put(&mut table, path, value.clone());
        }
        let text = toml::to_string(&table).unwrap_or_default();
        Ok(Experiment::parse(&text, &self.path.to_string_lossy(), &[])?)
    }
}

/// The value at a path.
pub(crate) fn value_at<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let first = table.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}

/// One value of a line of `freedom.keys`: the keys that it sets.
pub(crate) type Setting = Changes;

/// All combinations of the free keys; one without keys if there are none.
pub(crate) fn choices(path: &Path, keys: &Table) -> Result<Vec<Vec<Setting>>, PlannerError> {
    let mut choices = vec![Vec::new()];
    for (line, values) in flat(keys) {
        let keys: Vec<_> = line.split(',').map(str::trim).collect();
        if let Some(own) = OWN.iter().find(|own| keys.iter().any(|key| key.starts_with(**own))) {
            let why = format!("freedom.keys has `{line}`, and the planner sets `{own}`");
            return Err(PlannerError::file(path, why, "parts and levels are what it chooses from"));
        }
        choices = choices
            .iter()
            .flat_map(|choice| values.iter().map(|value| [choice.as_slice(), &[setting(&keys, value)]].concat()))
            .collect();
        if choices.is_empty() || choices.len() > 100 {
            let why = format!("freedom.keys has {} combinations", choices.len());
            return Err(PlannerError::file(path, why, "between 1 and 100 are possible"));
        }
    }
    Ok(choices)
}

/// A value for some keys, as in `[sweep]`: all get the same, or each its own from a list with one for each.
fn setting(keys: &[&str], value: &Value) -> Setting {
    let own = value.as_array().filter(|values| keys.len() > 1 && values.len() == keys.len());
    let of = |at: usize| own.map_or(value, |values| &values[at]).clone();
    keys.iter().enumerate().map(|(at, key)| ((*key).to_owned(), of(at))).collect()
}

/// Lines of keys with their lists: `a.b = [..]` as well as `"a.b" = [..]`.
fn flat(table: &Table) -> Vec<(String, Vec<Value>)> {
    let of = |(key, value): (&String, &Value)| match value {
        Value::Table(inner) => {
            flat(inner).into_iter().map(|(below, values)| (format!("{key}.{below}"), values)).collect()
        }
        Value::Array(values) => vec![(key.clone(), values.clone())],
        single => vec![(key.clone(), vec![single.clone()])],
    };
    table.iter().flat_map(of).collect()
}

/// Sets the value at a path. A value on the way that is not a table becomes one.
fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Table::new().into());
            if !inner.is_table() {
                *inner = Table::new().into();
            }
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Multiplies the sizes of all sources.
fn scale_sources(table: &mut Table, factor: f64) -> Result<(), String> {
    let readout = table.get_mut("readout").and_then(Value::as_table_mut);
    let source = readout.and_then(|readout| readout.get_mut("source")).ok_or("it has no `readout.source` to scale")?;
    scale(source, &SIZES, factor)
}

/// Multiplies these sizes of one source or of several; each must have one of them.
pub(crate) fn scale(sources: &mut Value, keys: &[&str], factor: f64) -> Result<(), String> {
    let sources: Vec<&mut Table> = match sources {
        Value::Table(one) => vec![one],
        Value::Array(several) => several.iter_mut().filter_map(Value::as_table_mut).collect(),
        _ => Vec::new(),
    };
    for source in sources {
        let mut scaled = 0;
        for (key, value) in source.iter_mut().filter(|(key, _)| keys.contains(&key.as_str())) {
            let size: ByteCount = value
                .as_str()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| format!("`readout.source.{key}` is not a size"))?;
            *value = ByteCount((size.0 as f64 * factor).round() as u64).to_string().into();
            scaled += 1;
        }
        if scaled == 0 {
            return Err("its sources are described by a file, whose sizes cannot be scaled".to_owned());
        }
    }
    Ok(())
}

/// A value in words.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Table(table) => match table.get("type") {
            Some(Value::String(name)) => {
                let rest = table.iter().filter(|(key, _)| *key != "type");
                let rest: Vec<_> = rest.map(|(key, value)| format!("{key} {}", value_text(value))).collect();
                if rest.is_empty() { name.clone() } else { format!("{name} ({})", rest.join(", ")) }
            }
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}
