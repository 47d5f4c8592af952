//! Karol, Hluchyj and Morgan 1987: queues at the inputs or at the outputs of one switch.

use crate::{
    PaperError, Results,
    report_builder::ReportBuilder,
    results::{efficiency, mean_us},
};

/// Time of a cell through a switch that stores it, in slots of 1 us, without a wait.
const STORED: f64 = 2.0;
/// The same through a switch that passes it on byte after byte, of which there are 125 in a slot.
const PASSED_ON: f64 = 1.0 + 1.0 / 125.0;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let waits = |experiment: &str, unloaded: f64| -> Result<Vec<f64>, PaperError> {
        results.all(experiment)?.iter().map(|record| Ok(mean_us(record)? - unloaded)).collect()
    };
    for ports in ["2", "8", "64"] {
        let waits = waits(&format!("output-{ports}"), STORED)?;
        report.column("output-wait", &format!("{ports}-ports"), &waits)?;
    }
    report.column("input-wait", "random", &waits("input", PASSED_ON)?)?;
    let carried: Vec<_> = results.all("dropping")?.iter().map(efficiency).collect();
    report.column("dropping", "throughput", &carried)
}
