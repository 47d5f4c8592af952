//! The faults that a record knows: causes with their names, and what followed from them.

use super::{Limit, LimitRole};
use crate::{network_faults, verdict::words};
use evb_record::{
    Effect, Finding, FindingKind, LinkRecord, Network, NetworkFault, ReadoutRecord, Record, SourceState,
    waiting_sources,
};

/// Most causes of a kind that are named.
const MOST_CAUSES: usize = 8;
/// Part of the fragments of the other sources below which a source that events waited for counts as one that lacks.
pub(super) const LACKING: f64 = 0.95;

/// Findings that follow from others, or from the load.
const CONSEQUENCES: [FindingKind; 10] = [
    FindingKind::NoBuilders,
    FindingKind::TooFewNodes,
    FindingKind::NotDrained,
    FindingKind::NothingTriggered,
    FindingKind::LostEvents,
    FindingKind::IncompleteEvents,
    FindingKind::LostMessages,
    FindingKind::LostRequests,
    FindingKind::RateNotKept,
    FindingKind::Reassigned,
];

/// Findings that are faults, although the result may be good with them.
const HARMLESS: [FindingKind; 6] = [
    FindingKind::DeadLink,
    FindingKind::LostFilterUnits,
    FindingKind::ApartLost,
    FindingKind::LinkHeldUp,
    FindingKind::Refused,
    FindingKind::Repeated,
];

/// True for findings about the end of a run, which hold of no run that is not over.
pub(super) const fn needs_end(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::NothingTriggered
            | FindingKind::LostEvents
            | FindingKind::LostMessages
            | FindingKind::MissedEnd
            | FindingKind::Unmatched
            | FindingKind::RateNotKept
            | FindingKind::RateNotJudged
    )
}

/// The faults that follow from no other one, by their names.
pub(super) fn causes(record: &Record, lacking: f64) -> Vec<Limit> {
    let network = record.simulation.as_ref().map(|simulation| &simulation.network);
    let mut all: Vec<_> = network.into_iter().flat_map(of_network).collect();
    let failing = |finding: &&Finding| finding.kind.effect() == Effect::Fails && !CONSEQUENCES.contains(&finding.kind);
    // The links in a deadlock are named above.
    let is_new = |finding: &&Finding| finding.kind != FindingKind::Deadlock || all.is_empty();
    let named: Vec<_> = record.findings.iter().filter(failing).filter(is_new).collect();
    let lacking = lacking_sources(record, &named, lacking);
    all.extend(named.into_iter().take(MOST_CAUSES).map(|finding| of_finding(finding, LimitRole::Cause)));
    all.extend(lacking);
    let harmless = record.findings.iter().filter(|finding| HARMLESS.contains(&finding.kind));
    all.extend(harmless.take(MOST_CAUSES).map(|finding| of_finding(finding, LimitRole::Cause)));
    all
}

/// What followed from faults, the run first and then its events. What was not carried is explained by the resources.
pub(super) fn consequences(record: &Record) -> Vec<Limit> {
    let follows = |finding: &&Finding| CONSEQUENCES.contains(&finding.kind) && finding.kind != FindingKind::RateNotKept;
    let counted = |finding: &Finding| {
        let mut limit = of_finding(finding, LimitRole::Consequence);
        if finding.kind == FindingKind::IncompleteEvents && !record.faults.is_empty() {
            let kinds = record.faults.iter().map(|(kind, count)| format!("{count} {}", kind.replace('_', " ")));
            limit.how_known = format!("fragments: {}", kinds.collect::<Vec<_>>().join(", "));
        }
        limit
    };
    record.findings.iter().filter(follows).map(counted).collect()
}

fn of_finding(finding: &Finding, role: LimitRole) -> Limit {
    let Finding { kind, subject, message, hint } = finding;
    // Messages about a node begin with its name.
    let why = message.strip_prefix(&format!("{subject}: ")).or(message.strip_prefix(&format!("{subject} ")));
    let how_known = format!("finding: {}", words(*kind));
    Limit {
        role,
        what: subject.clone(),
        why: why.unwrap_or(message).into(),
        how_known,
        advice: hint.clone().unwrap_or_default(),
    }
}

fn cause(what: impl Into<String>, why: impl Into<String>, how_known: String, advice: &str) -> Limit {
    Limit { role: LimitRole::Cause, ..Limit::new(what, why, how_known, advice) }
}

/// What is broken in a simulated network.
fn of_network(network: &Network) -> Vec<Limit> {
    let faults = network.faults.iter().take(MOST_CAUSES).map(of_fault);
    deadlock(network).into_iter().chain(faults).chain(drops(network)).collect()
}

fn deadlock(network: &Network) -> Option<Limit> {
    let links = &network.deadlock;
    let first = links.first()?;
    let how = format!("{} links wait for each other in a circle: {}", links.len(), links.join(", "));
    let advice = "routes without circles: dimension order, or up and down";
    Some(cause(first, "the network is in a deadlock", how, advice))
}

fn of_fault(fault: &NetworkFault) -> Limit {
    let rate = fault.dip.map_or_else(String::new, |dip| format!("; {}", network_faults::rate(dip)));
    let cut = match fault.cut_off.as_slice() {
        [] => String::new(),
        nodes => format!(", which cuts off {}", nodes.join(", ")),
    };
    let advice = match (fault.action.as_str(), fault.cut_off.is_empty(), fault.rerouted_s) {
        ("fail", false, _) => "a second port for each host (nic.ports), on another switch or link",
        ("fail", true, Some(_)) => "a shorter time until new routes are found (reroute), or more links beside it",
        ("pause", ..) => {
            "another interface; a watchdog (network.flow.watchdog) keeps such a fault from the rest of the network"
        }
        ("fail", true, None) => "a way around it: more links or switches beside it",
        _ => "replace it; more links or switches beside it soften such a fault",
    };
    let how = format!("{}{rate}", network_faults::losses(fault));
    cause(&fault.target, format!("{}{cut}", network_faults::since(fault)), how, advice)
}

/// Packets that were dropped because queues were full, and those for which no route was left.
fn drops(network: &Network) -> Option<Limit> {
    let most = network.links.iter().max_by_key(|link| link.dropped).filter(|link| link.dropped > 0);
    if let Some(LinkRecord { name, dropped, .. }) = most {
        let links = network.links.iter().filter(|link| link.dropped > 0).count();
        let timeouts = network.connections.as_ref().map_or(0, |connections| connections.timeouts);
        let how = format!(
            "{dropped} packets dropped there, {} lost in all, at {links} {}{}",
            network.lost_packets,
            if links == 1 { "link" } else { "links" },
            if timeouts > 0 { format!("; connections waited for {timeouts} timeouts") } else { String::new() }
        );
        let advice = "fewer senders at a time (protocol.window, shaping), deeper queues (network.flow.queue), or flow control \
                      instead of drops (network.flow.full = \"pause\")";
        return Some(cause(name, "its queue was full, and packets were dropped", how, advice));
    }
    ingress_drops(network).or_else(|| without_way(network))
}

/// Packets that came to an input that had asked for a pause and had no headroom for them.
fn ingress_drops(network: &Network) -> Option<Limit> {
    let most = network.links.iter().max_by_key(|link| link.ingress_dropped).filter(|link| link.ingress_dropped > 0)?;
    let how = format!("{} packets lost there, {} lost in all", most.ingress_dropped, network.lost_packets);
    let advice = "more headroom, as its cable needs (network.flow.headroom), or none of it set, so that it follows from the cable";
    Some(cause(&most.name, "its receiver asked for a pause, and had no headroom for what was under way", how, advice))
}

/// Packets that were lost though no queue was full.
fn without_way(network: &Network) -> Option<Limit> {
    (network.lost_packets > 0 && network.faults.is_empty()).then(|| {
        let how = format!("{} packets lost", network.lost_packets);
        cause("network", "packets had no way to their destination", how, "look at the topology and its routes")
    })
}

/// Live sources that events wait for: in a run that is over those that sent nothing, or less than a part of what others
/// sent. Those of findings are named there.
fn lacking_sources(record: &Record, named: &[&Finding], part: f64) -> Vec<Limit> {
    let is_live =
        |readout: &&ReadoutRecord| readout.source_id.is_none() && (readout.came > 0 || readout.fragments == 0);
    let most = record.readouts.iter().filter(is_live).map(|readout| readout.came).max().unwrap_or(0);
    let has_open = record.events.incomplete > 0 || record.events.lost > 0 || record.events.triggered == 0;
    if most == 0 || !has_open || record.stages.is_some() {
        return Vec::new();
    }
    let waiting = waiting_sources(record.readouts.iter(), record.seconds);
    let lacks = |(unit, readout): (usize, &ReadoutRecord)| {
        let name = format!("ru{unit}");
        let is_named = named.iter().any(|finding| finding.subject == name) || record.lost_nodes.contains(&name);
        let is_waited_for = part <= 0.0 && waiting.iter().any(|waiting| waiting.source == name);
        let is_lacking = readout.came == 0 || (readout.came as f64) < part * most as f64 || is_waited_for;
        (is_live(&readout) && is_lacking && !is_named).then(|| lacking_source(name, readout, most))
    };
    record.readouts.iter().enumerate().filter_map(lacks).take(MOST_CAUSES).collect()
}

fn lacking_source(name: String, readout: &ReadoutRecord, most: u64) -> Limit {
    let came = readout.came;
    let why = match &readout.source {
        Some(source) if source.state != SourceState::Sending => {
            format!("its front end is {} since {:.3} s after the start", source.state.name(), source.since_s)
        }
        _ if came == 0 => "no fragment came from its source".to_owned(),
        _ => format!("its source sent {came} fragments, fewer than others"),
    };
    let last = readout.source.as_ref().and_then(|source| source.last_s);
    let last = last.map_or_else(String::new, |last| format!(", the last one at {last:.3} s"));
    let how = format!("{came} fragments came from it{last}, and {most} from the source with most");
    let advice = "look at this front end and its connection first: the events wait for its fragments";
    cause(name, why, how, advice)
}
