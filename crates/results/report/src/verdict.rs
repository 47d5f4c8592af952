//! The findings and the verdict of a run or simulation.

use evb_record::{FindingKind, Record};

/// The findings, and the verdict.
pub(crate) fn verdict(record: &Record) -> String {
    let mut text = String::from("\n");
    let mut say = |line: &str| text.extend([line, "\n"]);
    for finding in record.findings.iter().filter(|finding| !LAST_LINE.contains(&finding.kind)) {
        say(&format!("{}: {}", finding.kind.name().replace('_', " "), finding.message));
        if let Some(hint) = &finding.hint {
            say(&format!("  hint: {hint}"));
        }
    }
    if !record.lost_nodes.is_empty() {
        say(&format!("lost nodes: {}", record.lost_nodes.join(", ")));
    }
    say(&last_line(record));
    text
}

/// Findings that the last line shows.
const LAST_LINE: [FindingKind; 4] =
    [FindingKind::NothingTriggered, FindingKind::IncompleteEvents, FindingKind::LostEvents, FindingKind::LostMessages];

fn last_line(record: &Record) -> String {
    let (events, unit) = (&record.events, record.unit());
    let built = if unit == "event" { "built" } else { "delivered" };
    match (record.good, events.incomplete, events.lost) {
        (true, ..) if events.rejected > 0 => {
            format!(
                "good: {} {unit}s {built} complete and {} rejected, all accounted for",
                events.built, events.rejected
            )
        }
        (true, ..) => format!("good: all {} {unit}s {built} complete", events.built),
        (false, ..) if events.triggered == 0 => format!("not good: there was no {unit} at all"),
        (false, 0, 0) if events.rejected > 0 => {
            format!("not good: all {unit}s are {built} or rejected, but see above")
        }
        (false, 0, 0) => format!("not good: all {unit}s are {built}, but see above"),
        (false, 0, lost) if unit == "message" => format!("not good: of {} messages {lost} are lost", events.triggered),
        (false, incomplete, lost) => {
            format!("not good: of {} {unit}s {incomplete} are incomplete and {lost} are lost", events.triggered)
        }
    }
}
