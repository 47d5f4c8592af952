//! Validation outputs of uet-htsim: the ends of flows of 2 MB over Ultra Ethernet.

use super::htsim::mean_end;
use crate::{PaperError, Results, report_builder::ReportBuilder};

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let items = [
        ("alone.nscc", "alone", 0..1),
        ("alone.rccc", "alone", 1..2),
        ("incast.nscc", "incast", 0..1),
        ("incast.rccc", "incast", 1..2),
        ("many-paths.nscc", "many-paths", 0..1),
        // Five draws of the routes.
        ("one-path.nscc", "one-path", 0..5),
        ("one-path.rccc", "one-path", 5..10),
    ];
    for (item, experiment, points) in items {
        report.item(item, mean_end(results.all(experiment)?[points].iter()))?;
    }
    Ok(())
}
