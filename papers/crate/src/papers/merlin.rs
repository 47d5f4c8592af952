//! The tests of merlin, a network simulator: the end of an all-to-all on tori, fat trees and a dragonfly.

use crate::{PaperError, Results, report_builder::ReportBuilder};

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let experiments = [
        ("torus-64", "torus", 0),
        ("torus-128", "torus", 1),
        ("fat-tree-128", "fat-tree-128", 0),
        ("fat-tree-256", "fat-tree-256", 0),
        ("dragonfly-72", "dragonfly-72", 0),
    ];
    for (item, experiment, point) in experiments {
        report.item(item, results.point(experiment, point)?.seconds * 1e6)?;
    }
    Ok(())
}
