//! Faults of a simulated network: what was down, what it cost, and how the rate took it.

use crate::{
    rates::hertz,
    text::{bars, nanos},
};
use evb_record::{Dip, Network, NetworkFault, Timeline};

/// Most faults in a summary.
const MOST_FAULTS: usize = 8;

/// The rows of a summary: the faults, and the rate over time.
pub(crate) fn rows(network: &Network) -> Vec<(&'static str, String)> {
    let sentence = |fault: &NetworkFault| {
        let rate = fault.dip.map_or_else(|| "the time is too short for a rate".into(), rate);
        ("fault", format!("{} {}: {}; {rate}", fault.target, since(fault), losses(fault)))
    };
    let mut rows: Vec<_> = network.faults.iter().take(MOST_FAULTS).map(sentence).collect();
    if network.faults.len() > MOST_FAULTS {
        rows.push(("fault", format!("{} more", network.faults.len() - MOST_FAULTS)));
    }
    let before = network.faults.iter().filter_map(|fault| fault.dip).map(|dip| dip.before_hz).reduce(f64::max);
    rows.extend(network.timeline.iter().map(|timeline| ("timeline", rates(timeline, before))));
    rows
}

/// What happened to the element, and when.
pub(crate) fn since(fault: &NetworkFault) -> String {
    let (at, until) = (seconds(fault.at_s), fault.until_s.map_or_else(|| "the end".to_owned(), seconds));
    match fault.action.as_str() {
        "fail" => format!("was down from {at} to {until}"),
        "slow" => format!("was slow from {at} to {until}"),
        "pause" => format!("was paused by its host from {at} to {until}"),
        _ => format!("corrupted packets from {at} to {until}"),
    }
}

/// What was lost and rerouted, and which nodes were cut off.
pub(crate) fn losses(fault: &NetworkFault) -> String {
    let mut parts = vec![format!("{} packets lost", fault.lost_packets)];
    if let Some(at) = fault.rerouted_s.filter(|_| fault.cut_off.is_empty()) {
        parts.push(format!("{} rerouted, routes without it from {}", fault.rerouted_packets, seconds(at)));
    }
    if !fault.cut_off.is_empty() {
        parts.push(format!("{} cut off", fault.cut_off.join(", ")));
    }
    parts.join(", ")
}

/// The rate around a fault.
pub(crate) fn rate(dip: Dip) -> String {
    let Dip { before_hz, lowest_hz, recovered_after_s, after_hz, .. } = dip;
    let (before, lowest, after) = (hertz(before_hz), hertz(lowest_hz), hertz(after_hz));
    match recovered_after_s {
        Some(0.0) => format!("{before} before, never more than 5 % less after it, {after} on average"),
        Some(recovered) => {
            format!(
                "{before} before, {lowest} at the lowest, within 5 % again after {}, then {after}",
                seconds(recovered)
            )
        }
        None => format!("{before} before, {lowest} at the lowest, not recovered: {after} at the end"),
    }
}

fn seconds(seconds: f64) -> String {
    nanos(seconds * 1e9)
}

/// The rate in each step, with a bar that is full at the rate before the faults.
fn rates(timeline: &Timeline, before_hz: Option<f64>) -> String {
    let most = before_hz.unwrap_or_else(|| timeline.rates_hz.iter().copied().fold(0.0, f64::max));
    bars(&timeline.rates_hz, timeline.step_s, most, &format!("{} or more", hertz(most)))
}
