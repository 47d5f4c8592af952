//! The findings and the verdict of a run or simulation.

use evb_record::{FindingKind, Outcome, Record};

/// The findings, and the verdict.
pub(crate) fn verdict(record: &Record) -> String {
    let mut text = String::from("\n");
    let mut say = |line: &str| text.extend([line, "\n"]);
    for finding in record.findings.iter().filter(|finding| !LAST_LINE.contains(&finding.kind)) {
        say(&format!("{}: {}", words(finding.kind), finding.message));
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

/// The verdict with its reason.
fn last_line(record: &Record) -> String {
    let outcome = record.outcome();
    let reason = match record.reason() {
        None if outcome == Outcome::Good => good(record),
        None => counts(record),
        Some(finding) if LAST_LINE.contains(&finding.kind) => counts(record),
        Some(finding) if record.events.incomplete == 0 && record.events.lost == 0 => {
            format!("{}, see above", words(finding.kind))
        }
        Some(finding) => format!("{}, see above; {}", words(finding.kind), counts(record)),
    };
    format!("{}: {reason}", outcome.name())
}

/// The kind of a finding in words.
pub(crate) fn words(kind: FindingKind) -> String {
    kind.name().replace('_', " ")
}

fn good(record: &Record) -> String {
    let (events, unit) = (&record.events, record.unit());
    let built = if unit == "event" { "built" } else { "delivered" };
    if events.rejected > 0 {
        return format!(
            "{} {unit}s {built} complete and {} rejected, all accounted for",
            events.built, events.rejected
        );
    }
    format!("all {} {unit}s {built} complete", events.built)
}

fn counts(record: &Record) -> String {
    let (events, unit) = (&record.events, record.unit());
    match (events.incomplete, events.lost) {
        _ if events.triggered == 0 => format!("there was no {unit} at all"),
        (0, lost) if unit == "message" => format!("of {} messages {lost} are lost", events.triggered),
        (incomplete, lost) => {
            format!("of {} {unit}s {incomplete} are incomplete and {lost} are lost", events.triggered)
        }
    }
}
