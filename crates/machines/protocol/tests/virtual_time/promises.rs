//! Promises that an event builder keeps under all faults. The checkers know the outcome of a run and nothing of the
//! machines.

use crate::{
    network::is_long,
    outcome::{History, Outcome, Stored},
    scenario::{FRAGMENT, Scenario},
    schedule::Fault as Trouble,
};
use evb_control::RunState;
use evb_core::{EventId, NodeId, Time};
use evb_protocol::{Assignment, Config, Ending, Fault};
use std::collections::BTreeSet;

/// The first promise that is broken, as a text; `None` if all are kept.
pub(crate) fn broken(scenario: &Scenario, history: &History) -> Option<String> {
    let is_over = matches!(history.state, RunState::Initial | RunState::Stopped | RunState::Failed);
    if !is_over {
        return Some(format!("run control does not come to an end: it is {}", history.state));
    }
    let mut started = history.runs.iter().enumerate().filter(|(_, run)| run.started);
    started.find_map(|(index, run)| Some(format!("run {index}: {}", broken_in(scenario, run)?)))
}

/// The first promise that one run breaks, as a text. A run that was cut short may be incomplete; its reports are right.
fn broken_in(scenario: &Scenario, run: &Outcome) -> Option<String> {
    let always = [end, pauses, exclusions, accounts, events, bounds];
    let with_patience = [progress, evidence, questions];
    let mut promises = always.iter().chain(with_patience.iter().filter(|_| !run.cut));
    promises.find_map(|promise| promise(scenario, run).err())
}

type Kept = Result<(), String>;

fn ensure(kept: bool, message: impl FnOnce() -> String) -> Kept {
    if kept { Ok(()) } else { Err(message()) }
}

/// True when the node was gone at any time of the run.
fn was_gone(outcome: &Outcome, node: NodeId) -> bool {
    outcome.gone.iter().any(|(gone, ..)| *gone == node)
}

/// A run ends, and fails only without its event manager or all of its builders.
fn end(scenario: &Scenario, outcome: &Outcome) -> Kept {
    ensure(outcome.over, || "it does not end".into())?;
    let may_fail = was_gone(outcome, Config::EVENT_MANAGER)
        || scenario.config.builder_nodes().iter().all(|node| was_gone(outcome, node));
    ensure(!outcome.failed || may_fail, || "it fails, and has all that it needs".into())
}

/// Only nodes that are disturbed themselves are given up, and of two that do not reach each other only one.
fn exclusions(scenario: &Scenario, outcome: &Outcome) -> Kept {
    let excluded = &outcome.excluded;
    let is_for = |fault: &Trouble, id: &NodeId| match fault {
        Trouble::Crash { node, .. } | Trouble::Stop { node, .. } | Trouble::Isolation { node, .. } => node == id,
        Trouble::Partition { pair, .. } => pair.contains(id),
        _ => false,
    };
    let faults = || scenario.faults.iter().map(|(_, fault)| fault);
    let healthy = excluded.iter().find(|node| !faults().any(|fault| is_for(fault, node)));
    ensure(healthy.is_none(), || format!("{healthy:?} is given up and was not disturbed"))?;
    let disturbed =
        |node: &NodeId| faults().any(|fault| is_for(fault, node) && !matches!(fault, Trouble::Partition { .. }));
    for fault in faults() {
        if let Trouble::Partition { pair, .. } = fault {
            let both = pair.iter().all(|node| excluded.contains(node) && !disturbed(node));
            ensure(!both, || format!("both of {pair:?} are given up"))?;
        }
    }
    Ok(())
}

/// Nothing is triggered from the moment at which the event manager hears of a pause until its end is commanded.
fn pauses(_: &Scenario, outcome: &Outcome) -> Kept {
    let ends = outcome.resumes.iter().copied().chain([Time::MAX]);
    for (&begin, end) in outcome.pauses.iter().zip(ends) {
        let triggered = outcome.triggered.iter().filter(|&&at| at > begin && at < end).count();
        ensure(triggered == 0, || format!("{triggered} events are triggered in a pause from {begin:?} to {end:?}"))?;
    }
    Ok(())
}

/// After the last fault a run with its event manager continues to its end, and nothing is left behind.
fn progress(scenario: &Scenario, outcome: &Outcome) -> Kept {
    if was_gone(outcome, Config::EVENT_MANAGER) {
        return Ok(());
    }
    ensure(outcome.drained && !outcome.stood_still, || format!("it does not drain: {} open", outcome.manager.open()))?;
    // Nodes that are ordered to begin another run have no time to release everything.
    // A node that is cut off and not given up, because the run has ended, may never hear that its events are over.
    let is_cut_off = |id: &NodeId| {
        scenario.faults.iter().any(|(_, fault)| match fault {
            // Without the event manager no node hears what is over.
            Trouble::Isolation { node, span } => [id, &Config::EVENT_MANAGER].contains(&node) && is_long(*span),
            Trouble::Partition { pair, span } => pair.contains(id) && is_long(*span),
            _ => false,
        })
    };
    let left = |nodes: &BTreeSet<NodeId>| !outcome.superseded && !nodes.iter().all(is_cut_off);
    ensure(!left(&outcome.building), || format!("{:?} have events that will never end", outcome.building))?;
    ensure(!left(&outcome.holding), || format!("{:?} hold fragments of events that are over", outcome.holding))
}

/// An event ends once, if it was triggered, and is counted as what it ended as.
fn accounts(_: &Scenario, outcome: &Outcome) -> Kept {
    let (counts, triggered) = (&outcome.manager, outcome.triggered.len() as u64);
    for (event, ends) in &outcome.ended {
        ensure(ends.len() == 1, || format!("event {event} is accounted for {} times", ends.len()))?;
        ensure((1..=triggered).contains(&event.0), || format!("event {event} was not triggered"))?;
    }
    if was_gone(outcome, Config::EVENT_MANAGER) {
        return Ok(());
    }
    ensure(outcome.cut || triggered == outcome.ended.len() as u64, || {
        format!("{triggered} triggered, {} ended", outcome.ended.len())
    })?;
    let ended = |ending| outcome.ended.values().filter(|ends| ends[0].0 == ending).count() as u64;
    let found = [Ending::Complete, Ending::Incomplete, Ending::Rejected].map(ended);
    ensure(found == [counts.built, counts.incomplete, counts.rejected], || format!("{found:?} for {counts:?}"))
}

/// The event as stored by the builder whose report counts.
fn accounted(outcome: &Outcome, event: EventId, builder: NodeId) -> Result<&Stored, String> {
    let stored = outcome.stored.get(&event).and_then(|all| all.iter().rfind(|one| one.builder == builder));
    stored.ok_or_else(|| format!("event {event} is accounted for, and {builder} has not stored it"))
}

/// A fragment is missing only where there is evidence: its source has none, or its readout unit was dead.
fn evidence(scenario: &Scenario, outcome: &Outcome) -> Kept {
    for (&event, ends) in &outcome.ended {
        let (ending, builder, end) = ends[0];
        if ending != Ending::Incomplete || is_unbuilt(scenario, outcome, event) {
            continue;
        }
        let stored = accounted(outcome, event, builder)?;
        let begin = outcome.triggered[event.0 as usize - 1];
        let asked = scenario.asked(event).into_iter();
        let mut lacking = asked.filter(|source| !stored.good.contains(source)).peekable();
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

/// True for an event without a builder: its number chose one, and that one was gone when the event ended. The builder
/// may have stored it without a report.
fn is_unbuilt(scenario: &Scenario, outcome: &Outcome, event: EventId) -> bool {
    let (_, builder, end) = outcome.ended[&event][0];
    let by_number = scenario.config.assignment == Assignment::ByNumber && builder == scenario.owner(event);
    by_number && is_gone(outcome, builder, end, end)
}

fn is_gone(outcome: &Outcome, unit: NodeId, begin: Time, end: Time) -> bool {
    outcome.gone.iter().any(|&(node, from, to)| node == unit && from <= end && to >= begin)
}

/// An event is stored by the builder that reports it, a complete one with every fragment. Rejected events need not be
/// stored; only a filter that does not accept them may reject them.
fn events(scenario: &Scenario, outcome: &Outcome) -> Kept {
    for (&event, ends) in &outcome.ended {
        match ends[0] {
            (Ending::Complete, builder, _) => {
                let stored = accounted(outcome, event, builder)?;
                ensure(stored.good == scenario.asked(event), || {
                    format!("event {event} is called complete with {:?}", stored.good)
                })?;
            }
            (Ending::Rejected, ..) => {
                ensure(scenario.has_rest() && !scenario.filter.accepts(event, true), || {
                    format!("event {event} is rejected")
                })?;
            }
            (Ending::Incomplete, ..) if is_unbuilt(scenario, outcome, event) => {}
            (Ending::Incomplete, builder, _) => _ = accounted(outcome, event, builder)?,
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
    // A builder drops events that are not granted for long, and asks for them if they are granted after all.
    let let_go = outcome.faults.get(Fault::Unexpected);
    ensure(harmed || repeated <= let_go, || format!("{repeated} fragments were sent again, and none was lost"))?;
    ensure(harmed || outcome.repeated == 0, || format!("{} second copies came, and none was lost", outcome.repeated))?;
    let fragments = outcome.manager.triggered * u64::from(scenario.config.readout_units);
    // A question about one fragment goes out less and less often.
    ensure(outcome.asked <= 200 * fragments.max(1), || format!("{} questions for {fragments}", outcome.asked))
}
