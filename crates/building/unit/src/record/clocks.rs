//! Findings about clocks, where fragments are matched by time.

use crate::ReadoutReport;
use evb_protocol::Fault;
use evb_record::{ClockPlace, ClockRecord, Finding, FindingKind};

/// The findings about the clock of a readout unit.
pub(super) fn findings(unit: u16, readout: &ReadoutReport) -> Vec<Finding> {
    let Some(clock) = &readout.counts.clock else { return Vec::new() };
    let count = |fault: Fault| readout.faults.get(fault.name()).copied().unwrap_or(0);
    let finding = |kind, message: String, hint: &str| {
        Finding::new(kind, format!("ru{unit}"), format!("ru{unit} {message}")).hint(hint)
    };
    let mut found = Vec::new();
    // Of a clock whose place is known, the last fragments wait for others at the end of a run.
    let waiting = if clock.place == ClockPlace::Known { 0 } else { count(Fault::Unplaced) };
    let unplaced = count(Fault::OutOfStep) + waiting;
    if unplaced > 0 {
        let (why, hint) = unknown_place(clock);
        let message = format!("could not tell to which events {unplaced} of its fragments belong: {why}");
        found.push(finding(FindingKind::OutOfStep, message, hint));
    }
    if count(Fault::Ambiguous) > 0 {
        let message = format!(
            "has {} fragments that by their times could belong to several events, or to none without doubt",
            count(Fault::Ambiguous)
        );
        found.push(finding(FindingKind::Ambiguous, message, "a shorter `window` of the trigger tells more apart"));
    }
    if count(Fault::Late) > 0 {
        let message = format!("has {} fragments that came when their time was over", count(Fault::Late));
        let hint = "a longer `sort_depth` is for fragments that are out of order, a longer `latency` for slow delivery";
        found.push(finding(FindingKind::TooLate, message, hint));
    }
    found
}

/// Why the place of a clock was not known, and what helps.
fn unknown_place(clock: &ClockRecord) -> (String, &'static str) {
    match clock.place {
        ClockPlace::Regular => (
            "they come at regular intervals, which fit the other sources at many places".into(),
            "triggers at irregular intervals tell the offset of a clock; `clock_offset` at the source gives it",
        ),
        ClockPlace::Unheard | ClockPlace::Sought => (
            "their times fit those of the other sources nowhere".into(),
            "`frequency` and `bits` of the clock may be wrong, or the sources may not see the same triggers",
        ),
        ClockPlace::Known if clock.lost > 0 => (
            format!("the place of its clock was lost {} times", clock.lost),
            "a clock that leaps or starts again is found again by itself, which takes some hundred fragments",
        ),
        ClockPlace::Known => (
            "they came before the place of its clock was found".into(),
            "the first fragments wait for `trigger.patience`; `clock_offset` at the source is known from the start",
        ),
    }
}
