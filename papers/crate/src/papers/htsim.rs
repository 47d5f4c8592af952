//! Examples of csg-htsim: the throughput of permutations over routes that are drawn for each pair.

use crate::{PaperError, Results, fit::mean, report_builder::ReportBuilder};

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let rates = rates(results, "permutation")?;
    report.item("permutation.mean", mean(&rates))?;
    let parts = [("lowest", 0.0), ("p10", 0.1), ("median", 0.5), ("p90", 0.9), ("highest", 1.0)];
    for (name, part) in parts {
        report.item(&format!("permutation.{name}"), rates[(part * (rates.len() - 1) as f64).round() as usize])?;
    }
    report.item("slow-core.mean", mean(&self::rates(results, "slow-core")?))
}

/// The rates of all senders with all draws of routes, in Gbit/s, the lowest first.
fn rates(results: &Results, experiment: &str) -> Result<Vec<f64>, PaperError> {
    let of_senders = results.all(experiment)?.iter().flat_map(|record| &record.per_source_bytes_per_s);
    let mut rates: Vec<f64> = of_senders.map(|rate| rate * 8e-9).collect();
    rates.sort_by(f64::total_cmp);
    Ok(rates)
}
