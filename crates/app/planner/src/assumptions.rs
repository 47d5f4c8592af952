//! What an experiment assumes about events, packets and hosts, and the same with other values.

use crate::{
    PlannerError,
    base::{Changes, SIZES, scale, value_at},
    problem::Problem,
    simulations::Case,
};
use evb_core::{ByteCount, Span};
use evb_record::ASSUMED;
use evb_report::metric;
use toml::{Table, Value};

/// An assumption with another value.
pub(crate) struct Assumed {
    /// In words.
    pub(crate) what: &'static str,
    /// The value of the plan.
    pub(crate) value: String,
    /// The other value, as a factor of it.
    pub(crate) factor: f64,
    pub(crate) case: Case,
}

/// Costs of packets and messages: what they are, and their keys, whose times and bytes change together.
const COSTS: [(&str, &[&str]); 4] = [
    ("header of each packet", &["network.nic.header"]),
    ("time of interfaces for a packet", &["network.nic.overhead"]),
    ("time of hosts for a message", &["network.host.send", "network.host.receive"]),
    (
        "work of processors",
        &[
            "network.cpu.poll",
            "network.cpu.poll_peer",
            "network.cpu.send",
            "network.cpu.receive",
            "network.cpu.crossing",
            "network.cpu.manager",
            "network.cpu.readout",
            "network.cpu.builder",
            "network.cpu.storage",
            "network.cpu.filter",
            "network.cpu.cache.byte",
            "network.cpu.wake",
            "network.cpu.context_switch",
            "network.cpu.refill",
        ],
    ),
];

/// All assumptions of a network's experiment, each at both factors of [`ASSUMED`]. What the experiment does not have is left out.
pub(crate) fn assumptions(
    problem: &Problem<'_>,
    candidate: usize,
    choice: usize,
) -> Result<Vec<Assumed>, PlannerError> {
    let own = Case::new(candidate, choice, 1.0);
    let experiment = problem.experiment(&own, problem.requirements.search.triggers[0], None)?;
    // It has the values of the preset, too.
    let table: Table = toml::from_str(&experiment.resolved()).expect("a resolved experiment is TOML");
    let mut all = Vec::new();
    let mut add = |what, value: String, of: &dyn Fn(f64) -> Option<(f64, Changes)>| {
        all.extend(ASSUMED.into_iter().filter_map(|factor| {
            let (load, changes) = of(factor)?;
            Some(Assumed { what, value: value.clone(), factor, case: Case { load, changes, ..own.clone() } })
        }));
    };
    let bytes = problem.choices[choice].demand.event_bytes;
    add("event size", format!("{}B", metric(bytes)), &|factor| Some((1.0, scaled_sources(&table, &SIZES, factor)?)));
    add("event rate", format!("{}Hz", metric(problem.required_hz())), &|factor| Some((factor, Changes::new())));
    add("spread of sizes", spread(&table), &|factor| Some((1.0, scaled_sources(&table, &[SPREAD], factor)?)));
    for (what, keys) in COSTS {
        let values: Vec<_> = keys.iter().flat_map(|key| costs(&table, key)).collect();
        add(what, words(&values), &|factor| Some((1.0, scaled_costs(&values, factor)?)));
    }
    Ok(all)
}

/// The key of the sources.
const SOURCES: &str = "readout.source";
/// The key of a source that is the spread of its sizes.
const SPREAD: &str = "rms";

/// The sources with these sizes multiplied; `None` if not all of them have some, or nothing changes.
fn scaled_sources(table: &Table, keys: &[&str], factor: f64) -> Option<Changes> {
    let sources = value_at(table, SOURCES)?;
    let mut scaled = sources.clone();
    scale(&mut scaled, keys, factor).ok()?;
    (scaled != *sources).then(|| vec![(SOURCES.to_owned(), scaled)])
}

/// The spread of the sizes of all sources, if it is the same for all.
fn spread(table: &Table) -> String {
    let one = value_at(table, SOURCES).and_then(|source| source.get(SPREAD)).and_then(Value::as_str);
    one.map_or_else(|| "of each source".to_owned(), |text| format!("rms {text}"))
}

/// The times and bytes at a key and below it that are not 0, with their keys.
fn costs(table: &Table, key: &str) -> Vec<(String, String)> {
    // Processors take the place of the times of hosts.
    let is_idle = key.starts_with("network.host.") && value_at(table, "network.cpu").is_some();
    match value_at(table, key) {
        _ if is_idle => Vec::new(),
        Some(Value::String(text)) if scaled(text, 1.0).is_some() => vec![(key.to_owned(), text.clone())],
        Some(Value::Table(inner)) => inner.keys().flat_map(|below| costs(table, &format!("{key}.{below}"))).collect(),
        _ => Vec::new(),
    }
}

/// The costs with their values multiplied; `None` without any.
fn scaled_costs(values: &[(String, String)], factor: f64) -> Option<Changes> {
    let scaled = values.iter().filter_map(|(key, text)| Some((key.clone(), scaled(text, factor)?.into())));
    Some(scaled.collect()).filter(|changes: &Changes| !changes.is_empty())
}

/// A time or a number of bytes, multiplied; `None` if it is 0 or something else.
fn scaled(text: &str, factor: f64) -> Option<String> {
    let times = |value: u64| Some((value as f64 * factor).round() as u64).filter(|&value| value > 0);
    match (text.parse::<Span>(), text.parse::<ByteCount>()) {
        (Ok(time), _) => Some(Span(times(time.0)?).to_string()),
        (_, Ok(bytes)) => Some(ByteCount(times(bytes.0)?).to_string()),
        _ => None,
    }
}

/// One value, or a few with the last words of their keys, or their number.
fn words(values: &[(String, String)]) -> String {
    match values {
        [(_, text)] => text.clone(),
        few if few.len() <= 3 => {
            let word =
                |(key, text): &(String, String)| format!("{} {text}", key.rsplit('.').next().unwrap_or_default());
            few.iter().map(word).collect::<Vec<_>>().join(", ")
        }
        many => format!("{} costs", many.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::{costs, scaled, scaled_sources};
    use crate::base::SIZES;
    use toml::Table;

    const RESOLVED: &str = r#"
        [readout]
        source = { type = "log-normal", mean = "40 kB", rms = "20 kB", fed = 3 }
        [network]
        nic = { overhead = "0 s", header = "90 B" }
        host = { send = "2 us", receive = "0 s" }
    "#;

    #[test]
    fn only_what_the_experiment_has_is_assumed() {
        let table: Table = RESOLVED.parse().unwrap();
        assert_eq!(costs(&table, "network.nic.header"), [("network.nic.header".to_owned(), "90 B".to_owned())]);
        assert!(costs(&table, "network.nic.overhead").is_empty());
        assert!(costs(&table, "network.cpu.send").is_empty());
        assert_eq!(costs(&table, "network.host").len(), 1);
        let with_processors: Table = (RESOLVED.to_owned() + "cpu = { send = { call = \"1 us\" } }").parse().unwrap();
        assert!(costs(&with_processors, "network.host.send").is_empty());
        assert_eq!(costs(&with_processors, "network.cpu.send")[0].0, "network.cpu.send.call");
    }

    #[test]
    fn sizes_times_and_bytes_are_multiplied() {
        let table: Table = RESOLVED.parse().unwrap();
        let both = scaled_sources(&table, &SIZES, 1.1).unwrap().remove(0).1;
        assert_eq!((both["mean"].as_str(), both["rms"].as_str()), (Some("44 kB"), Some("22 kB")));
        let spread = scaled_sources(&table, &["rms"], 0.9).unwrap().remove(0).1;
        assert_eq!((spread["mean"].as_str(), spread["rms"].as_str()), (Some("40 kB"), Some("18 kB")));
        assert!(scaled_sources(&table, &["min"], 0.9).is_none());
        assert_eq!(scaled("90 B", 1.1).as_deref(), Some("99 B"));
        assert_eq!(scaled("2 us", 0.9).as_deref(), Some("1.8 us"));
        assert_eq!((scaled("0 s", 1.1), scaled("cubic", 1.1)), (None, None));
    }
}
