//! Patel 1981: delta networks of crossbars without queues.

use crate::{
    PaperError, Results,
    fit::mean,
    report_builder::ReportBuilder,
    results::{efficiency, links_between},
};
use evb_record::Record;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (radix, stages) in [(2, 8), (4, 4), (8, 3)] {
        let network = format!("delta-{radix}");
        for (load, column) in [("1", "rate-1"), ("0.5", "rate-half")] {
            let record = results.at(&network, &[("workload.load", load)])?;
            let rates = (0..stages).map(|stage| behind(record, stage)).collect::<Result<Vec<_>, _>>()?;
            report.column(&network, column, &rates)?;
        }
    }
    let crossbars: Vec<_> = results.all("crossbar")?.iter().map(|record| efficiency(record) / 100.0).collect();
    report.column("crossbar", "rate-half", &crossbars)
}

/// Requests per cycle on an output of a stage, counted from 0.
fn behind(record: &Record, stage: u32) -> Result<f64, PaperError> {
    let used: Vec<_> = links_between(record, &format!("stage{stage}_"), "")?.map(|link| link.used).collect();
    Ok(mean(&used))
}
