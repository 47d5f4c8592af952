//! Hluchyj and Karol 1988: output queues with room for few cells.

use crate::{PaperError, Results, report_builder::ReportBuilder, results::links_between};
use evb_record::Record;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for load in ["80", "90"] {
        for ports in ["8", "16"] {
            let records = results.all(&format!("loss-{ports}-{load}"))?;
            let lost = records.iter().map(loss).collect::<Result<Vec<_>, _>>()?;
            report.column(&format!("loss-{load}"), &format!("{ports}-ports"), &lost)?;
        }
    }
    Ok(())
}

/// The part of the cells that found the queue of their output full.
fn loss(record: &Record) -> Result<f64, PaperError> {
    let (mut sent, mut dropped) = (0, 0);
    for link in links_between(record, "", "h")? {
        (sent, dropped) = (sent + link.packets, dropped + link.dropped);
    }
    Ok(dropped as f64 / (sent + dropped) as f64)
}
