//! A simulation of the experiment on one network, and what it shows.

use evb_record::{Effect, Outcome, Record};
use evb_report::{LimitRole, explain, metric};
use serde::{Deserialize, Serialize};

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was simulated: the version of evb and the experiment, as a hash.
    pub key: String,
    /// The verdict of the simulation.
    pub outcome: Outcome,
    /// Events per second that were built.
    pub rate_hz: f64,
    /// Events per second that were offered.
    pub offered_hz: f64,
    /// Events that were lost, or not complete.
    pub lost: u64,
    /// Packets that were dropped. Where some were, chance has a part in the verdict.
    #[serde(default)]
    pub dropped: u64,
    /// 99th percentile of the latency, in microseconds.
    pub p99_us: f64,
    /// The link that was in use most of the time; empty if none was.
    pub busiest_link: String,
    /// The part of the time in which it was.
    pub busiest_used: f64,
    /// The reason of a verdict that is not good; empty if it is.
    pub reason: String,
}

impl Trial {
    pub(crate) fn new(key: String, record: &Record) -> Self {
        let outcome = record.outcome();
        let links = record.simulation.iter().flat_map(|simulation| &simulation.network.links);
        let dropped = links.clone().map(|link| link.dropped).sum();
        let busiest = links.max_by(|a, b| a.used.total_cmp(&b.used));
        Self {
            key,
            outcome,
            rate_hz: record.event_rate_hz,
            offered_hz: record.trigger.offered_rate_hz.unwrap_or(0.0),
            lost: record.events.lost + record.events.incomplete,
            dropped,
            p99_us: record.latency_us.p99,
            busiest_link: busiest.map(|link| link.name.clone()).unwrap_or_default(),
            busiest_used: busiest.map_or(0.0, |link| link.used),
            reason: if outcome == Outcome::Good { String::new() } else { reason(record) },
        }
    }

    /// The verdict with a limit of the latency, in microseconds.
    pub(crate) fn verdict(&self, latency_us: Option<f64>) -> (Outcome, String) {
        match latency_us.filter(|&most| self.p99_us > most) {
            Some(most) if self.outcome == Outcome::Good => {
                let why = format!(
                    "99 % of the events take up to {} us, and {} us are asked for",
                    metric(self.p99_us).trim_end(),
                    metric(most).trim_end()
                );
                (Outcome::NotGood, why)
            }
            _ => (self.outcome, self.reason.clone()),
        }
    }
}

/// The rate that was reached, and what limits it by the evidence of the links.
fn reason(record: &Record) -> String {
    let offered = record.trigger.offered_rate_hz.unwrap_or(0.0);
    let lost = record.events.lost + record.events.incomplete;
    let rate = match record.event_rate_hz < 0.99 * offered {
        true => format!("{}Hz of {}Hz are built", metric(record.event_rate_hz), metric(offered)),
        false if lost > 0 => format!("{lost} of {} events are lost or incomplete", record.events.triggered),
        false => record
            .findings
            .iter()
            .find(|finding| finding.kind.effect() != Effect::Remark)
            .map_or_else(|| record.outcome().name().to_owned(), |finding| finding.message.clone()),
    };
    let limits = explain(record);
    let limit = limits.iter().find(|limit| limit.role == LimitRole::Resource).or(limits.first());
    match limit {
        Some(limit) if limit.what != "trigger" => {
            format!("{rate}: {}, {} ({})", limit.what, limit.why, limit.how_known)
        }
        _ => rate,
    }
}
