//! The connections of a simulation in a summary: what they did in all, and over time where something was sent again.

use crate::text::{bars, metric};
use evb_record::{Connections, ConnectionsOverTime};

/// The rows of a summary.
pub(crate) fn rows(connections: &Connections) -> Vec<(&'static str, String)> {
    let mut rows = vec![("connections", totals(connections))];
    rows.extend(connections.over_time.iter().filter(|all| has_losses(all)).flat_map(over_time));
    rows
}

fn totals(connections: &Connections) -> String {
    let &Connections { count, segments, sent_again, timeouts, notices, trimmed, most_senders, ref rates, .. } =
        connections;
    let notices = if notices > 0 { format!(", {notices} notices of congestion") } else { String::new() };
    let trimmed = if trimmed > 0 { format!(", {trimmed} trimmed") } else { String::new() };
    let most = if most_senders > 1 { format!("; up to {most_senders} senders at a receiver") } else { String::new() };
    let fairness = rates.fairness;
    format!(
        "{count}; {segments} segments, {sent_again} of them again{trimmed}, {timeouts} timeouts{notices}{most}; \
         fairness {fairness:.2}"
    )
}

fn has_losses(all: &ConnectionsOverTime) -> bool {
    all.sent_again.iter().chain(&all.timeouts).any(|&count| count > 0)
}

/// What arrived, and what had to be sent again.
fn over_time(all: &ConnectionsOverTime) -> [(&'static str, String); 2] {
    let again: Vec<_> = all.sent_again.iter().map(|&segments| segments as f64).collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (goodput, segments) = (most(&all.goodput_bytes_per_s), most(&again));
    let full = format!("{}B/s of goodput", metric(goodput));
    let row = bars(&all.goodput_bytes_per_s, all.step_s, goodput, &full);
    [("over time", row), ("sent again", bars(&again, all.step_s, segments, &format!("{segments} segments")))]
}
