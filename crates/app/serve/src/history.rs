//! The history of the rates: one point a second for an hour.

use crate::rates::Rates;
use serde::Serialize;
use std::collections::VecDeque;

/// Time between two points, in seconds.
const INTERVAL: f64 = 1.0;
/// Most points.
const LONGEST: usize = 3600;

/// The names of the columns.
const COLUMNS: [&str; 7] =
    ["time", "trigger_hz", "built_hz", "incomplete_hz", "inhibited_hz", "bytes_per_s", "stored_bytes_per_s"];

/// The rates of the last hour.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct History {
    columns: [&'static str; 7],
    points: VecDeque<[f64; 7]>,
}

impl Default for History {
    fn default() -> Self {
        Self { columns: COLUMNS, points: VecDeque::new() }
    }
}

impl History {
    /// Notes the rates at a time, in seconds since 1970. Points that come too early are left out.
    pub(crate) fn note(&mut self, now: f64, rates: &Rates) {
        if self.points.back().is_some_and(|last| now < last[0] + INTERVAL) {
            return;
        }
        if self.points.len() == LONGEST {
            self.points.pop_front();
        }
        let Rates { trigger_hz, built_hz, incomplete_hz, inhibited_hz, bytes_per_s, stored_bytes_per_s, .. } = *rates;
        self.points.push_back([
            now,
            trigger_hz,
            built_hz,
            incomplete_hz,
            inhibited_hz,
            bytes_per_s,
            stored_bytes_per_s,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_with_a_point_a_second() {
        let mut history = History::default();
        for quarter in 0..4 * 5000 {
            history.note(f64::from(quarter) / 4.0, &Rates { built_hz: f64::from(quarter), ..Rates::default() });
        }
        assert_eq!(history.points.len(), LONGEST);
        let (first, last) = (history.points.front().unwrap(), history.points.back().unwrap());
        assert_eq!((first[0], last[0], last[2]), (1400.0, 4999.0, 19996.0));
    }
}
