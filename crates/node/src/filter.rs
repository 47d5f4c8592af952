//! The filter units of a builder node: their start, their files, and their part of the report.

use crate::control::NodeError;
use crate::storage::StreamSummary;
use evb_experiment::Plan;
use evb_filter::{Code, Hello, Units, UnitsReport};
use evb_record::{Filtering, Finding, FindingKind, Stream};
use evb_transport::Waker;
use evb_unit::BuilderReport;

/// Most events in quarantine with a finding of their own.
const MOST_FINDINGS: usize = 3;

/// Starts the filter units of builder `builder`; none if the plan has none.
pub(crate) fn start(plan: &Plan, run: u64, builder: u16, waker: Waker) -> Result<Option<Units>, NodeError> {
    let Some(units) = &plan.filter.units else { return Ok(None) };
    let hello = Hello { run, builder, unit: 0, streams: plan.filter.own_streams().to_vec() };
    let started = Units::start(units, &hello, waker);
    started.map(Some).map_err(|error| crate::limits::error("cannot start a thread for a filter unit", &error))
}

/// Checks that this machine can run the code of the filter units. A program without a folder is found by the system.
pub(crate) fn check_files(plan: &Plan) -> Result<(), NodeError> {
    let Some(units) = &plan.filter.units else { return Ok(()) };
    if matches!(units.code, Code::Module(_)) && !Code::HAS_MODULES {
        let error = NodeError::new("this evb was built without WebAssembly, and `filter.module` needs it");
        return Err(error.hint("build it with `cargo build --release --features wasm`, on every machine of the run"));
    }
    match units.code.file().filter(|path| !path.is_file()) {
        Some(path) => {
            let error = NodeError::new(format!("there is no filter {}", path.display()));
            Err(error.hint("`program`, `library` and `module` of [filter] are relative to the folder of the node"))
        }
        None => Ok(()),
    }
}

/// Adds to the report of a builder what its filter units and its files know.
pub(crate) fn complete(
    report: &mut BuilderReport,
    builder: u16,
    units: Option<UnitsReport>,
    streams: Vec<StreamSummary>,
) {
    let Some(filtering) = &mut report.filter else { return };
    let stream = |StreamSummary { name, copies, written }| Stream {
        name,
        copies,
        events: written.events,
        bytes: written.bytes,
        ..Stream::default()
    };
    filtering.streams = streams.into_iter().map(stream).collect();
    let Some(units) = units else { return };
    filtering.restarts = units.restarts;
    filtering.reasons = units.reasons.iter().map(|(&name, &count)| (name.to_owned(), count)).collect();
    let found = findings(filtering, builder, &units);
    report.findings.extend(found);
}

/// Findings for people: the filter units that were given up, the number of events in quarantine, and the first ones.
fn findings(filtering: &Filtering, builder: u16, units: &UnitsReport) -> Vec<Finding> {
    let subject = format!("bu{builder}");
    let finding = |kind, message: String| Finding::new(kind, &subject, message);
    let given_up = units.given_up.iter().map(|message| {
        finding(FindingKind::FilterFailed, format!("{message}; it was given up"))
            .hint("run the filter by hand, or see its output on standard error")
    });
    let total: u64 = filtering.reasons.values().sum();
    let all = (total > 0).then(|| {
        let message = format!("{total} events of {subject} are in quarantine, without a decision");
        finding(FindingKind::Quarantined, message)
            .hint("they are stored in the stream `quarantine`, and can be decided about later")
    });
    let first = units.told.iter().take(MOST_FINDINGS);
    let first = first.map(|(event, reason)| finding(FindingKind::Quarantined, format!("event {event}: {reason}")));
    given_up.chain(all).chain(first).collect()
}
