//! Pollaczek 1930, Khintchine 1932, Erlang 1909: the wait for one link under Poisson arrivals.

use crate::{PaperError, Results, report_builder::ReportBuilder, results::mean_us};
use evb_record::Record;

/// Time of a message of mean size on the link, in microseconds.
const SERVICE: f64 = 10.0;
/// Time by which the switch delays each message, in microseconds: that of a byte.
const BYTE: f64 = 0.008;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for sizes in ["uniform", "log-normal"] {
        report.column("mean-wait", sizes, &mean_waits(results, sizes)?)?;
    }
    report.column("fixed", "mean", &mean_waits(results, "fixed")?)?;
    let records = results.all("fixed")?;
    let above = |quantile: fn(&Record) -> f64| move |record: &Record| (quantile(record) - BYTE) / SERVICE - 1.0;
    let longest: Vec<_> = records.iter().map(above(|record| record.latency_us.p99)).collect();
    report.column("fixed", "99-percent", &longest)?;
    // Below a load of one half, more than half of the messages do not wait.
    let median: Vec<_> = records.iter().skip(2).map(above(|record| record.latency_us.p50)).collect();
    report.column("median", "wait", &median)
}

/// Mean waits in mean times of service, at each load.
fn mean_waits(results: &Results, sizes: &str) -> Result<Vec<f64>, PaperError> {
    let wait = |record: &Record| Ok((mean_us(record)? - BYTE) / SERVICE - 1.0);
    results.all(sizes)?.iter().map(wait).collect()
}
