//! The filter units of a builder node: their start, their files, and their part of the report.

use crate::error::NodeError;
use crate::storage::StreamSummary;
use evb_experiment::Plan;
use evb_filter::{Hello, Memory, RemoteListener, Units, UnitsPlan, UnitsReport};
use evb_record::{Filtering, Finding, FindingKind, Given, Stream};
use evb_transport::{Token, Waker};
use evb_unit::BuilderReport;
use std::{env, net::TcpListener};

/// Most events in quarantine with a separate finding.
const MOST_FINDINGS: usize = 3;
/// Variable of the environment with which filter units have no memory, to compare both ways.
const BY_PIPE: &str = "EVB_FILTER_BY_PIPE";

/// Variable of the environment with the token that filter units of other machines show.
const TOKEN: &str = "EVB_TOKEN";

/// Starts the filter units of builder `builder`; `None` if the plan has none.
pub(crate) fn start(plan: &Plan, run: u64, builder: u16, waker: Waker) -> Result<Option<Units>, NodeError> {
    let Some(units) = &plan.filter.units else { return Ok(None) };
    let hello = Hello { run, builder, unit: 0, streams: plan.filter.own_streams().to_vec() };
    let memory = if env::var_os(BY_PIPE).is_some() { Memory::Pipe } else { memory(plan, units) };
    let listener = units.listen.as_ref().map(|address| listen(address, builder)).transpose()?;
    let started = Units::start(units, &hello, memory, listener, waker);
    started.map(Some).map_err(|error| crate::limits::error("cannot start a thread for a filter unit", &error))
}

/// Listens for filter units of builder `builder`, at the port of the plan plus its index.
fn listen(address: &str, builder: u16) -> Result<RemoteListener, NodeError> {
    let failed = |error: &dyn std::fmt::Display| {
        NodeError::new(format!("bu{builder} cannot listen for filter units at {address}, its index added: {error}"))
            .hint("`filter.listen` is \"HOST:PORT\" for builder 0, and each further builder has the next port; port 0 is any free one")
    };
    let token = token()?;
    let (host, port) = address.rsplit_once(':').ok_or_else(|| failed(&"the port is missing"))?;
    let port: u16 = port.parse().map_err(|error| failed(&error))?;
    let own = if port == 0 { Some(0) } else { port.checked_add(builder) };
    let own = own.ok_or_else(|| failed(&"ports end at 65535"))?;
    let listener = TcpListener::bind(format!("{host}:{own}")).map_err(|error| failed(&error))?;
    RemoteListener::new(listener, token).map_err(|error| failed(&error))
}

/// The token that filter units of other machines show.
fn token() -> Result<Token, NodeError> {
    let hint = format!(
        "make one with `export {TOKEN}=$(openssl rand -hex 32)`, and set the same for `evb run`, `evb node` and `evb filter`"
    );
    let text = env::var(TOKEN);
    let text =
        text.map_err(|_| NodeError::new(format!("{TOKEN} is not set, and `filter.listen` needs it")).hint(&hint))?;
    text.trim().parse().map_err(|error| NodeError::new(format!("{TOKEN}: {error}")).hint(&hint))
}

/// The memory of each filter unit for its events.
pub(crate) fn memory(plan: &Plan, units: &UnitsPlan) -> Memory {
    let fragments = plan.bundling.sources(plan.building.readout_units);
    Memory::for_events(units, fragments.into(), plan.max_fragment().0)
}

/// Checks that this machine can run the code of the filter units. A program without a folder is found by the system.
pub(crate) fn check_files(plan: &Plan) -> Result<(), NodeError> {
    let Some(units) = &plan.filter.units else { return Ok(()) };
    if units.listen.is_some() {
        token()?;
    }
    let Some(code) = &units.code else { return Ok(()) };
    match code.file().filter(|path| !path.is_file()) {
        Some(path) => {
            let error = NodeError::new(format!("the filter {} does not exist", path.display()));
            Err(error.hint("`program` and `library` of [filter] are relative to the folder of the node"))
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
    (filtering.joined, filtering.lost) = (units.joined, units.lost);
    let paths = [("memory", units.in_memory), ("pipe", units.by_pipe), ("network", units.by_network)];
    let paths = paths.into_iter().filter(|(_, given)| given.events > 0);
    filtering.given =
        paths.map(|(path, given)| (path.to_owned(), Given { events: given.events, bytes: given.bytes })).collect();
    let found = findings(filtering, builder, &units);
    report.findings.extend(found);
}

/// Findings: the filter units that were given up, the number of events in quarantine, and the first ones.
fn findings(filtering: &Filtering, builder: u16, units: &UnitsReport) -> Vec<Finding> {
    let subject = format!("bu{builder}");
    let finding = |kind, message: String| Finding::new(kind, &subject, message);
    let given_up = units.given_up.iter().map(|message| {
        finding(FindingKind::FilterFailed, format!("{message}; it was given up"))
            .hint("run the filter by hand, or see its output on standard error")
    });
    let no_memory = units.no_memory.iter().map(|why| {
        let message =
            format!("the system gave no memory to filter units of {subject}, which read events from pipes: {why}");
        finding(FindingKind::NoFilterMemory, message).hint("lower `readout.max_fragment` or `filter.events`")
    });
    let lost = units.first_lost.iter().map(|why| {
        let message = format!("{} filter units of other machines left {subject} during the run: {why}", units.lost);
        finding(FindingKind::LostFilterUnits, message)
            .hint("others decided about their events; see what the filter says on its machine")
    });
    let total: u64 = filtering.reasons.values().sum();
    let all = (total > 0).then(|| {
        let message = format!("{total} events of {subject} are in quarantine, without a decision");
        finding(FindingKind::Quarantined, message)
            .hint("they are stored in the stream `quarantine`, and can be decided about later")
    });
    let first = units.first_failures.iter().take(MOST_FINDINGS);
    let first = first.map(|(event, reason)| finding(FindingKind::Quarantined, format!("event {event}: {reason}")));
    given_up.chain(no_memory).chain(lost).chain(all).chain(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_units_without_memory_are_reported_once_as_a_remark() {
        let units = UnitsReport { no_memory: Some("64 B: out of memory".into()), ..UnitsReport::default() };
        let found = findings(&Filtering::default(), 3, &units);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.kind, finding.kind.effect()), (FindingKind::NoFilterMemory, evb_record::Effect::Remark));
        assert!(finding.message.contains("bu3") && finding.message.contains("64 B: out of memory"), "{finding:?}");
    }
}
