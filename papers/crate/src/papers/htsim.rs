//! Examples of csg-htsim: permutations over routes that are drawn for each pair, or over many at once.

use crate::{PaperError, Results, fit::mean, report_builder::ReportBuilder};
use evb_record::Record;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let rates = rates(results, "permutation")?;
    report.item("permutation.mean", mean(&rates))?;
    let parts = [("lowest", 0.0), ("p10", 0.1), ("median", 0.5), ("p90", 0.9), ("highest", 1.0)];
    for (name, part) in parts {
        report.item(&format!("permutation.{name}"), rates[(part * (rates.len() - 1) as f64).round() as usize])?;
    }
    report.item("slow-core.mean", mean(&self::rates(results, "slow-core")?))?;
    of_spraying(report, "spraying", &sorted_rates(results.point("spraying", 0)?))?;
    of_spraying(report, "spraying-slow-core", &sorted_rates(results.point("spraying-slow-core", 0)?))?;
    of_spraying(report, "steering-slow-core", &sorted_rates(results.point("spraying-slow-core", 1)?))?;
    for paths in ["1", "8", "32"] {
        let records = results.among("paths", &[("network.transport.paths", paths)])?;
        report.item(&format!("paths.{paths}"), mean_end(records.into_iter()))?;
    }
    Ok(())
}

fn of_spraying(report: &mut ReportBuilder, item: &str, rates: &[f64]) -> Result<(), PaperError> {
    report.item(&format!("{item}.mean"), mean(rates))?;
    report.item(&format!("{item}.lowest"), rates[0])
}

/// The end of the last flow in us, a mean over some records.
pub(super) fn mean_end<'r>(records: impl Iterator<Item = &'r Record>) -> f64 {
    mean(&records.map(|record| record.latency_us.max).collect::<Vec<_>>())
}

/// The rates of all senders with all draws of routes, in Gbit/s, the lowest first.
fn rates(results: &Results, experiment: &str) -> Result<Vec<f64>, PaperError> {
    let mut rates: Vec<f64> = results.all(experiment)?.iter().flat_map(sorted_rates).collect();
    rates.sort_by(f64::total_cmp);
    Ok(rates)
}

/// The rates of the senders of one record, in Gbit/s, the lowest first.
fn sorted_rates(record: &Record) -> Vec<f64> {
    let mut rates: Vec<f64> = record.per_source_bytes_per_s.iter().map(|rate| rate * 8e-9).collect();
    rates.sort_by(f64::total_cmp);
    rates
}
