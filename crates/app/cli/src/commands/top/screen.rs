//! The status of a service as text.

use evb_report::metric;
use serde_json::Value;
use std::fmt::Write as _;

/// Width of the bars that show how full something is.
const BAR: usize = 10;

/// Columns of a readout unit, with the state of its live source and without.
const WITH_SOURCE: usize = 46;
const WITHOUT_SOURCE: usize = 34;

/// The status in this number of columns and lines.
pub(super) fn of(status: &Value, width: usize, height: usize) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        let _never_fails = writeln!(text, "{}", line.chars().take(width).collect::<String>());
    };
    let word = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let run = &status["run"];
    let number = run["number"].as_u64().map_or_else(String::new, |number| {
        format!("  run {number} {} {:.0} s", word(&run["type"]), run["seconds"].as_f64().unwrap_or(0.0))
    });
    line(format!(
        "{}{number}  {}  {}",
        word(&status["state"]),
        word(&status["experiment"]),
        word(&status["transport"])
    ));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for node in list(&status["nodes"]).iter().filter(|node| node["state"] == "lost") {
        line(format!("LOST {}: {}", word(&node["name"]), word(&node["reason"])));
    }
    for source in list(&status["waiting"]) {
        let since = source["since_s"].as_f64().unwrap_or(0.0);
        let ago = run["seconds"].as_f64().unwrap_or(0.0) - since;
        line(format!("WAITING for {}: {} for {ago:.0} s", word(&source["source"]), words(&word(&source["state"]))));
    }
    let rates = &status["now_rates"];
    let hz = |name: &str| rates[name].as_f64().map_or_else(|| "-".into(), |rate| format!("{}Hz", metric(rate)));
    let bytes = |name: &str| rates[name].as_f64().map_or_else(|| "-".into(), |rate| format!("{}B/s", metric(rate)));
    line(format!("built {}  {}  stored {}", hz("built_hz"), bytes("bytes_per_s"), bytes("stored_bytes_per_s")));
    line(format!(
        "incomplete {}  rejected {}  turned away {}",
        hz("incomplete_hz"),
        hz("rejected_hz"),
        hz("inhibited_hz")
    ));
    let latency = &status["record"]["latency_us"];
    if let (Some(median), Some(p99)) = (latency["p50"].as_f64(), latency["p99"].as_f64()) {
        line(format!("latency {median:.0} us median, {p99:.0} us p99"));
    }
    if let Some(free) = status["disk"]["free_bytes"].as_f64() {
        let until = status["disk"]["seconds_until_full"].as_f64();
        let until = until.map_or_else(String::new, |seconds| format!(", full in {:.0} min", seconds / 60.0));
        line(format!("disk {}B left{until}", metric(free)));
    }
    let limit = &status["limit"];
    if let Some(what) = limit["what"].as_str() {
        let role = if limit["role"] == "cause" { "FAULT" } else { "limit" };
        line(format!("{role} {what}: {}", word(&limit["why"])));
    }
    if let Some(error) = status["error"]["error"].as_str() {
        line(format!("error: {error}"));
    }
    line(String::new());
    let used = text.lines().count();
    text.push_str(&units(rates, &status["record"]["readouts"], width, height.saturating_sub(used + 1)));
    text
}

/// A key as words.
fn words(key: &str) -> String {
    key.replace('_', " ")
}

/// The units, readout units on the left and builder units on the right, in at most this number of lines.
fn units(rates: &Value, records: &Value, width: usize, most: usize) -> String {
    let list = |name: &str| rates[name].as_array().cloned().unwrap_or_default();
    let (readouts, builders) = (list("readouts"), list("builders"));
    let has_sources =
        records.as_array().is_some_and(|records| records.iter().any(|record| record["source"].is_object()));
    let left_width = if has_sources { WITH_SOURCE } else { WITHOUT_SOURCE };
    let lines = readouts.len().max(builders.len());
    let mut text = String::new();
    for index in 0..lines.min(most) {
        let source =
            records[index]["source"]["state"].as_str().map_or_else(String::new, |state| format!("  {}", words(state)));
        let left = readouts.get(index).map_or_else(String::new, |unit| readout(index, unit) + &source);
        let right = builders.get(index).map_or_else(String::new, |unit| builder(index, unit));
        let line = format!("{left:<left_width$} {right}");
        let line: String = line.chars().take(width).collect();
        let _never_fails = writeln!(text, "{}", line.trim_end());
    }
    if lines > most {
        let _never_fails = writeln!(text, "and {} lines more: a higher terminal shows them", lines - most);
    }
    text
}

fn readout(index: usize, unit: &Value) -> String {
    let part =
        |held: &str, most: &str| unit[held].as_f64().unwrap_or(0.0) / unit[most].as_f64().unwrap_or(1.0).max(1.0);
    let full = part("held_events", "most_events").max(part("held_bytes", "most_bytes"));
    format!("ru{index:<4} {} {:>9}B/s", bar(full), metric(unit["bytes_per_s"].as_f64().unwrap_or(0.0)))
}

fn builder(index: usize, unit: &Value) -> String {
    let number = |name: &str| unit[name].as_f64().unwrap_or(0.0);
    let full = (number("open_events") + number("waiting_events")) / number("slots").max(1.0);
    let waits = unit["waiting_for"][0]["source"].as_str().filter(|_| number("waiting_events") < number("open_events"));
    let waits = waits.map_or_else(String::new, |source| format!("  waits for {source}"));
    format!("bu{index:<4} {} {:>9}B/s{waits}", bar(full), metric(number("bytes_per_s")))
}

/// How full something is.
fn bar(part: f64) -> String {
    let filled = (part.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("[{}{}]", "#".repeat(filled), ".".repeat(BAR - filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_fits_the_terminal() {
        let unit =
            json!({ "held_events": 50, "most_events": 100, "held_bytes": 1, "most_bytes": 100, "bytes_per_s": 2e6 });
        let builder = json!({ "open_events": 3, "waiting_events": 0, "slots": 4, "bytes_per_s": 1e6,
                              "waiting_for": [{ "source": "ru1", "events": 3 }] });
        let status = json!({
            "state": "degraded", "experiment": "two-by-two", "transport": "shm",
            "run": { "number": 7, "type": "physics", "seconds": 12.4 },
            "now_rates": { "built_hz": 1234.0, "bytes_per_s": 3e6, "readouts": vec![unit; 9], "builders": vec![builder; 2] },
            "nodes": [{ "name": "ru3", "state": "lost", "reason": "ru3 is gone" }, { "name": "ru1", "state": "up" }],
            "limit": { "what": "ru3", "why": "slow" },
            "waiting": [{ "source": "ru2", "state": "never_connected", "since_s": 0.0 }],
            "record": { "readouts": [{ "source": { "state": "sending" } }, {}, { "source": { "state": "never_connected" } }] },
        });
        insta::assert_snapshot!(of(&status, 80, 12));
        assert!(of(&status, 20, 5).lines().all(|line| line.chars().count() <= 60));
        assert!(of(&json!({ "state": "initial" }), 80, 24).starts_with("initial"));
    }
}
