//! Geoffray and Hoefler 2008: random pairs on a Myrinet of 512 hosts, with static and with adaptive routes.

use crate::{PaperError, Results, fit::mean, report_builder::ReportBuilder, results::per_destination};

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let alone = per_destination(results.point("one-pair", 0)?);
    for (item, experiment) in [("static", "static"), ("adaptive", "adaptive"), ("one-crossbar", "crossbar")] {
        // Seeds draw other routes.
        let pairs: Vec<_> = results.all(experiment)?.iter().map(per_destination).collect();
        report.item(item, mean(&pairs) / alone * 100.0)?;
    }
    Ok(())
}
