//! The sources and blocks of a run, for its summary.

use evb_record::Bundles;

/// Sources with faults that are named; the record has more.
const NAMED: usize = 5;

/// The rows about sources: how many there are, and which are masked or have faults.
pub(crate) fn rows(bundles: &Bundles) -> Vec<(&'static str, String)> {
    let Bundles { sources, block, masked, faulty_sources, faults } = bundles;
    let of_masked = if masked.is_empty() { String::new() } else { format!(", {} masked", masked.len()) };
    let of_block = if *block > 1 { format!(", blocks of {block} events") } else { String::new() };
    let mut rows = vec![("sources", format!("{sources}{of_masked}{of_block}"))];
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
