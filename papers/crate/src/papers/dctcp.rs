//! DCTCP 2010: flows across two bottlenecks.

use crate::{PaperError, Results, fit::mean, report_builder::ReportBuilder};

/// Bytes of a packet on the wire for each byte of its segment.
const ON_WIRE: f64 = (1448.0 + 90.0) / 1448.0;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let sources = &results.point("two-bottlenecks", 0)?.per_source_bytes_per_s;
    for (item, flows) in [("s1", 0..10), ("s2", 10..30), ("s3", 30..40)] {
        let rates = sources.get(flows).unwrap_or_default();
        report.item(item, mean(rates) * ON_WIRE * 8e-6)?;
    }
    Ok(())
}
