//! Faults of fragments, for the tables of runs and of simulations.

use evb_record::Record;

/// Rows of a summary: faults by kind, and slow or lost fragments; `None` if there are none.
pub(crate) fn rows(record: &Record) -> impl Iterator<Item = (&'static str, String)> {
    [faults(record), asked(record)].into_iter().flatten()
}

fn faults(record: &Record) -> Option<(&'static str, String)> {
    let kinds: Vec<_> =
        record.faults.iter().map(|(kind, count)| format!("{count} {}", kind.replace('_', " "))).collect();
    (!kinds.is_empty()).then(|| ("faults", kinds.join(", ")))
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
