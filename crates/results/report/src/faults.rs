//! Faults of fragments, for the tables of runs and of simulations.

use evb_record::Record;
use std::cmp::Reverse;

/// Sources with a fault that are named, the worst first.
const NAMED: usize = 3;

/// Rows of a summary: faults by kind, and slow or lost fragments; `None` if there are none.
pub(crate) fn rows(record: &Record) -> impl Iterator<Item = (&'static str, String)> {
    [faults(record), asked(record)].into_iter().flatten()
}

fn faults(record: &Record) -> Option<(&'static str, String)> {
    let kind = |(kind, count): (&String, &u64)| format!("{count} {}{}", kind.replace('_', " "), sources(record, kind));
    let kinds: Vec<_> = record.faults.iter().map(kind).collect();
    (!kinds.is_empty()).then(|| ("faults", kinds.join(", ")))
}

/// The sources that have a fault, as in " (ru1 30, ru4 2)"; nothing if they are not known.
fn sources(record: &Record, kind: &str) -> String {
    let all = (0..).zip(&record.readouts).filter_map(|(unit, readout)| Some((unit, *readout.faults.get(kind)?)));
    let mut all: Vec<(usize, u64)> = all.collect();
    all.sort_by_key(|&(unit, count)| (Reverse(count), unit));
    let named: Vec<_> = match all[..] {
        [(unit, _)] => vec![format!("ru{unit}")],
        _ => all.iter().take(NAMED).map(|(unit, count)| format!("ru{unit} {count}")).collect(),
    };
    match all.len().saturating_sub(NAMED) {
        _ if named.is_empty() => String::new(),
        0 => format!(" ({})", named.join(", ")),
        more => format!(" ({} and {more} more)", named.join(", ")),
    }
}

/// The row of questions and repeated fragments. A question costs little; a fragment that is sent again was lost or
/// damaged on its way.
fn asked(record: &Record) -> Option<(&'static str, String)> {
    let asked: u64 = record.builders.iter().map(|builder| builder.asked).sum();
    let again: u64 = record.readouts.iter().map(|unit| unit.repeated).sum();
    let text = match again {
        0 => format!("{asked} questions about fragments that were slow, none lost"),
        _ => format!("{asked} questions about fragments, {again} sent again"),
    };
    (asked > 0).then_some(("asked", text))
}
