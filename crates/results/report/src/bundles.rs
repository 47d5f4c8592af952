//! The sources and blocks of a run, for its summary.

use evb_record::{Bundles, Record};

/// Sources with faults that are named; the record has more.
const NAMED: usize = 5;

/// The rows about sources: how many there are, and which are masked or have faults. `None` if there are no bundles.
pub(crate) fn rows(record: &Record) -> Vec<(&'static str, String)> {
    let Some(bundles) = &record.bundles else { return Vec::new() };
    let Bundles { sources, masked, faulty_sources, faults, .. } = bundles;
    let of_masked = if masked.is_empty() { String::new() } else { format!(", {} masked", masked.len()) };
    let mut rows = vec![("sources", format!("{sources}{of_masked}{}", blocks(bundles.block, record.trigger.block)))];
    for (source, kinds) in faults.iter().take(NAMED) {
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        rows.push(("faults", format!("source {source}: {}", kinds.join(", "))));
    }
    let more = faulty_sources.saturating_sub(NAMED as u64);
    if more > 0 {
        rows.push(("faults", format!("{more} more sources, which `--json` shows")));
    }
    rows
}

/// The size of the blocks: the largest, and the mean if it is another one.
fn blocks(largest: u32, mean: f64) -> String {
    match largest {
        ..=1 => String::new(),
        // One smaller block at the end makes no visible difference.
        _ if mean > 0.0 && mean + 0.05 < largest.into() => {
            format!(", blocks of {mean:.1} events on average, {largest} at most")
        }
        _ => format!(", blocks of {largest} events"),
    }
}
