//! What an event builder promises, whatever goes wrong. The checkers know what happened in a run, and nothing of the
//! machines.

use crate::driver::{FRAGMENT, Outcome, Scenario, Stored};
use evb_core::{EventId, NodeId, Time};
use evb_protocol::{Ending, Fault, Protocol};
use std::collections::BTreeSet;

/// Why a promise is broken; `None` when all are kept.
pub(crate) fn broken(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let promises = [progress, accounts, evidence, events, bounds, questions];
    promises.iter().find_map(|promise| promise(scenario, outcome).err())
}

type Kept = Result<(), String>;

fn ensure(kept: bool, message: impl FnOnce() -> String) -> Kept {
    if kept { Ok(()) } else { Err(message()) }
}

/// After the last fault the run goes on and comes to its end, and nothing is left behind.
fn progress(_: &Scenario, outcome: &Outcome) -> Kept {
    ensure(outcome.drained, || format!("the run does not drain: {} open", outcome.manager.open()))?;
    ensure(outcome.idle, || "a builder has events that nobody will end".into())?;
    ensure(outcome.cleared, || "a readout unit holds fragments of events that are over".into())
}

/// Every triggered event ends once, and is counted as what it ended as.
fn accounts(_: &Scenario, outcome: &Outcome) -> Kept {
    let counts = &outcome.manager;
    ensure(counts.triggered == outcome.ended.len() as u64, || {
        format!("{} triggered, {} ended", counts.triggered, outcome.ended.len())
    })?;
    for (event, ends) in &outcome.ended {
        ensure(ends.len() == 1, || format!("event {event} is accounted for {} times", ends.len()))?;
        ensure((1..=counts.triggered).contains(&event.0), || format!("event {event} was not triggered"))?;
    }
    let ended = |ending| outcome.ended.values().filter(|ends| ends[0].0 == ending).count() as u64;
    let found = [Ending::Complete, Ending::Incomplete, Ending::Rejected].map(ended);
    ensure(found == [counts.built, counts.incomplete, counts.rejected], || format!("{found:?} for {counts:?}"))
}

/// What was stored of an event by the builder that is believed.
fn accounted(outcome: &Outcome, event: EventId, builder: NodeId) -> Result<&Stored, String> {
    let stored = outcome.stored.get(&event).and_then(|all| all.iter().rfind(|one| one.builder == builder));
    stored.ok_or_else(|| format!("event {event} is accounted for, and {builder} has not stored it"))
}

/// A fragment is missing only where there is evidence: its source has none, or its readout unit was dead.
fn evidence(scenario: &Scenario, outcome: &Outcome) -> Kept {
    for (&event, ends) in &outcome.ended {
        let (ending, builder, end) = ends[0];
        if ending != Ending::Incomplete {
            continue;
        }
        let stored = accounted(outcome, event, builder)?;
        let begin = outcome.triggered[event.0 as usize - 1];
        let mut lacking = (0..scenario.config.readout_units).filter(|source| !stored.good.contains(source)).peekable();
        ensure(lacking.peek().is_some(), || format!("event {event} is called incomplete and lacks nothing"))?;
        for source in lacking {
            let was_gone = is_gone(outcome, NodeId(1 + source), begin, end);
            ensure(scenario.spoils(event, source) || was_gone, || {
                format!("event {event} lacks the fragment of ru{source}, which has one and lives")
            })?;
        }
    }
    Ok(())
}

fn is_gone(outcome: &Outcome, unit: NodeId, begin: Time, end: Time) -> bool {
    outcome.gone.iter().any(|&(node, from, to)| node == unit && from <= end && to >= begin)
}

/// A complete event is stored with every fragment, by the builder that says so; a rejected one is not its business.
fn events(scenario: &Scenario, outcome: &Outcome) -> Kept {
    let all: BTreeSet<_> = (0..scenario.config.readout_units).collect();
    for (&event, ends) in &outcome.ended {
        match ends[0] {
            (Ending::Complete, builder, _) => {
                let stored = accounted(outcome, event, builder)?;
                ensure(stored.good == all, || format!("event {event} is called complete with {:?}", stored.good))?;
            }
            (Ending::Rejected, ..) => {
                let phased = matches!(scenario.config.protocol, Protocol::Phased { .. });
                ensure(phased && !scenario.filter.accepts(event, true), || format!("event {event} is rejected"))?;
            }
            (Ending::Incomplete, ..) => {}
        }
    }
    Ok(())
}

/// Buffers stay within what the file says.
fn bounds(scenario: &Scenario, outcome: &Outcome) -> Kept {
    let (config, fragment) = (&scenario.config, u64::from(FRAGMENT));
    let slots = u64::from(config.builder_slots);
    // The oldest event of all needs no slot.
    ensure(outcome.most_open <= slots + 2, || format!("{} events in a builder of {slots} slots", outcome.most_open))?;
    for unit in &outcome.readouts {
        ensure(unit.most_events <= u64::from(config.buffer_events), || {
            format!("{} events in a buffer", unit.most_events)
        })?;
        let most = config.buffer_bytes.0 + 2 * fragment;
        ensure(unit.most_bytes < most, || format!("{} bytes in a buffer of {most}", unit.most_bytes))?;
    }
    Ok(())
}

/// Asking for a fragment costs no second copy where nothing is lost, and a bounded number where something is.
fn questions(scenario: &Scenario, outcome: &Outcome) -> Kept {
    let repeated: u64 = outcome.readouts.iter().map(|unit| unit.repeated).sum();
    let harmed = outcome.harmed > 0 || scenario.harm_one_in > 0;
    // A builder lets go of what nobody grants for long, and asks for it when it is granted after all.
    let let_go = outcome.faults.get(Fault::Unexpected);
    ensure(harmed || repeated <= let_go, || format!("{repeated} fragments were sent again, and none was lost"))?;
    ensure(harmed || outcome.repeated == 0, || format!("{} second copies came, and none was lost", outcome.repeated))?;
    let fragments = outcome.manager.triggered * u64::from(scenario.config.readout_units);
    // A question about one fragment goes out less and less often.
    ensure(outcome.asked <= 200 * fragments.max(1), || format!("{} questions for {fragments}", outcome.asked))
}
