//! The identity of a measurement apart from its transport, and its text form.

use evb_record::{Benchmark, BenchmarkSettings, Comparison};
use std::cmp::Ordering;

/// Mark of a number whose messages were lost or corrupted.
pub(crate) const MARK_BAD: &str = "!";
/// Mark of a number that cannot be trusted.
pub(crate) const MARK_UNTRUSTED: &str = "?";

/// A measurement that several transports can share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case<'a> {
    pub(crate) pattern: &'a str,
    pub(crate) window: u32,
    pub(crate) rate_hz: Option<f64>,
    pub(crate) gathers: Option<(u16, u16)>,
    pub(crate) destinations: &'a [u16],
    pub(crate) nodes: u16,
    pub(crate) size_bytes: u64,
    pub(crate) compute_us: f64,
}

impl<'a> Case<'a> {
    fn new(pattern: &'a str, settings: &'a BenchmarkSettings) -> Self {
        let BenchmarkSettings { window, rate_hz, gathers, nodes, size_bytes, compute_us, .. } = *settings;
        Self { pattern, window, rate_hz, gathers, destinations: &settings.destinations, nodes, size_bytes, compute_us }
    }

    /// Returns true if both belong in one table.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let key = |case: &Self| (case.window, case.rate_hz, case.gathers, case.destinations);
        self.pattern == other.pattern && key(self) == key(other)
    }

    /// The pattern, and the way in which its senders send if there are several.
    pub(crate) fn heading(&self) -> String {
        let window = if self.window == 1 { String::new() } else { format!(", window {}", self.window) };
        let rate = self.rate_hz.map(crate::text::metric);
        let rate = match (rate, self.gathers) {
            (None, _) => String::new(),
            (Some(rate), None) => format!(", {rate}Hz offered by each sender"),
            (Some(rate), Some((least, most))) => format!(", {rate}Hz of events from {least} to {most} senders"),
        };
        format!("{}{}{window}{rate}", self.pattern, self.assigned())
    }

    /// The receivers of assigned senders.
    fn assigned(&self) -> String {
        let receivers: Vec<_> = self.destinations.iter().map(u16::to_string).collect();
        if receivers.is_empty() { String::new() } else { format!(" to {}", receivers.join(",")) }
    }

    /// The computing time for each event, in a suitable unit.
    pub(crate) fn compute(&self) -> String {
        crate::text::nanos((self.compute_us * 1e3).round())
    }

    /// The order: fewest nodes first, then the smallest size, then the least computing.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let whole = |case: &Self| (case.nodes, case.size_bytes);
        whole(self).cmp(&whole(other)).then(self.compute_us.total_cmp(&other.compute_us))
    }

    /// The measurements of some rows, each once and in their order, grouped by pattern, window, rate and senders of an event.
    pub(crate) fn groups(rows: impl Iterator<Item = Self>) -> Vec<Vec<Self>> {
        let mut groups: Vec<Vec<Case<'a>>> = Vec::new();
        for case in rows {
            match groups.iter_mut().find(|group| group[0].is_alike(&case)) {
                Some(group) if group.contains(&case) => {}
                Some(group) => group.push(case),
                None => groups.push(vec![case]),
            }
        }
        groups.iter_mut().for_each(|group| group.sort_by(Case::order));
        groups
    }
}

impl<'a> From<&'a Benchmark> for Case<'a> {
    fn from(row: &'a Benchmark) -> Self {
        Self::new(&row.pattern, &row.settings)
    }
}

impl<'a> From<&'a Comparison> for Case<'a> {
    fn from(row: &'a Comparison) -> Self {
        Self::new(&row.pattern, &row.settings)
    }
}

/// Distinct values in the order of their first occurrence.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

/// The mark of a row, one column wide.
pub(crate) fn mark(row: &Benchmark) -> &'static str {
    match (row.good, row.trusted) {
        (false, _) => MARK_BAD,
        (true, false) => MARK_UNTRUSTED,
        (true, true) => " ",
    }
}
