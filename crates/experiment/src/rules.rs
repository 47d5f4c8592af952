//! What several keys must agree on. Every rule looks at a tree whose single values are good.

use crate::{
    build::node_id,
    diagnostics::Problem,
    limits::{MAX_FOUND, MAX_FRAGMENTS, MAX_UNITS},
    scalar::unit,
    tree::Node,
    view::View,
};
use evb_core::{ByteCount, Span};
use evb_fabric::Network;
use std::collections::HashMap;

mod network;
mod workload;

/// A rule that finds at most one problem.
type Rule = fn(View<'_>) -> Option<Problem>;

/// What every experiment has to obey.
const EVERY: &[Rule] = &[too_many_units, missing_source, thresholds, buffer_bytes, warmup];
/// What the machines of event building want beyond that.
const EVENT_BUILDING: &[Rule] = &[group, packet_timeout, first_phase, buffer_events, fragments, end_of_run];

/// Checks all rules. `network` is that of the last point of the sweep, and then of this one.
pub(crate) fn check(root: &Node, network: &mut Option<Network>) -> Result<(), Vec<Problem>> {
    let view = View(root);
    let is_traffic = workload::is_traffic(view);
    let building = if is_traffic { &[] } else { EVENT_BUILDING };
    let mut problems: Vec<Problem> = EVERY.iter().chain(building).filter_map(|rule| rule(view)).collect();
    // The rules below go through all units, so their number must be good.
    if problems.is_empty() {
        match is_traffic {
            true => problems.extend(workload::check(view)),
            false => problems.extend(trigger(view)),
        }
        problems.extend(sources(view));
        problems.extend(listeners(view));
        problems.extend(view.list("fault").iter().filter_map(|node| fault(view, View(node))));
        problems.extend(network::check(view, network));
    }
    problems.truncate(MAX_FOUND);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn too_many_units(view: View<'_>) -> Option<Problem> {
    let (readouts, builders) = (view.integer::<i64>("readout.units"), view.integer::<i64>("builder.units"));
    (readouts + builders > MAX_UNITS).then(|| {
        let message = format!("{readouts} readout units and {builders} builder units are more than {MAX_UNITS} nodes");
        Problem::new(message, format!("readout and builder units together may be {MAX_UNITS}"))
            .at(view.origin("readout.units"), "readout units")
            .at(view.origin("builder.units"), "builder units")
    })
}

fn missing_source(view: View<'_>) -> Option<Problem> {
    let (units, given) = (view.integer::<usize>("readout.units"), view.list("readout.unit").len());
    if given > units {
        let message = format!("{given} tables [[readout.unit]] for {units} readout units");
        return Some(
            Problem::new(message, "leave `units` out: it is the number of tables then")
                .at(view.origin("readout.units"), "fewer than the tables"),
        );
    }
    if given == units || view.0.at("readout.source").is_some() {
        return None;
    }
    let message = format!("nothing feeds readout unit {given}: `readout.source` is missing");
    let help = "add a source for all units to [readout], such as source = { type = \"fixed\", size = \"2 kB\" }, or a \
                table [[readout.unit]] for each";
    Some(Problem::new(message, help).at(view.origin("readout"), "no `source` here"))
}

fn thresholds(view: View<'_>) -> Option<Problem> {
    let (busy, free) = (view.integer::<i64>("readout.busy"), view.integer::<i64>("readout.free"));
    (busy <= free).then(|| {
        let help = "the trigger stops at `busy` and resumes at `free`, so `free` must be below `busy` (90 and 70 if the \
                    file does not say)";
        Problem::new(format!("`readout.busy` of {busy} % is not above `readout.free` of {free} %"), help)
            .at(view.origin("readout.busy"), "busy")
            .at(view.origin("readout.free"), "free")
    })
}

fn group(view: View<'_>) -> Option<Problem> {
    let (group, builders) = (view.maybe_integer::<i64>("protocol.group")?, view.integer::<i64>("builder.units"));
    (group < builders).then(|| {
        let message = format!("`protocol.group` of {group} is below the number of builders, {builders}");
        let help =
            format!("a group holds one event for each builder or more: write {builders} or more, or leave it out");
        Problem::new(message, help)
            .at(view.origin("protocol.group"), "too small")
            .at(view.origin("builder.units"), "builders")
    })
}

fn packet_timeout(view: View<'_>) -> Option<Problem> {
    let (packet, patience): (Span, Span) = (view.maybe_quantity("shaping.timeout")?, view.quantity("builder.patience"));
    (packet >= patience).then(|| {
        let message = format!("`shaping.timeout` of {packet} is not below `builder.patience` of {patience}");
        let help = "builders would ask for fragments that only wait for their packet to fill: lower `shaping.timeout`, or \
                    raise `builder.patience`";
        Problem::new(message, help)
            .at(view.origin("shaping.timeout"), "too long")
            .at(view.origin("builder.patience"), "builder")
    })
}

fn first_phase(view: View<'_>) -> Option<Problem> {
    let (first, units) = (view.maybe_integer::<i64>("protocol.first")?, view.integer::<i64>("readout.units"));
    (first >= units).then(|| {
        let message = format!("`protocol.first` of {first} leaves none of {units} readout units for the second phase");
        let help = match units {
            1 => "phases need two readout units or more: raise `readout.units`, or write type = \"pull\"".to_owned(),
            _ => format!("write {} or less, or write type = \"pull\" to ask all units at once", units - 1),
        };
        Problem::new(message, help)
            .at(view.origin("protocol.first"), "too many")
            .at(view.origin("readout.units"), "readout units")
    })
}

fn buffer_events(view: View<'_>) -> Option<Problem> {
    let (builders, slots) = (view.integer::<u64>("builder.units"), view.integer::<u64>("builder.slots"));
    let buffer = view.integer::<u64>("readout.buffer_events");
    let needed = builders * slots;
    (buffer < needed).then(|| {
        let message = format!("`readout.buffer_events` of {buffer} is below what the builders can take, {needed}");
        let help = format!(
            "a readout unit holds its fragment of every event under construction, which are {builders} builders x \
             {slots} slots: raise `readout.buffer_events`, or lower `builder.slots`"
        );
        Problem::new(message, help)
            .at(view.origin("readout.buffer_events"), "too small")
            .at(view.origin("builder.slots"), "slots")
            .at(view.origin("builder.units"), "builders")
    })
}

fn fragments(view: View<'_>) -> Option<Problem> {
    let count = |path| view.integer::<u64>(path);
    let (readouts, builders, slots) = (count("readout.units"), count("builder.units"), count("builder.slots"));
    let fragments = readouts * builders * slots;
    (fragments > MAX_FRAGMENTS).then(|| {
        let message = format!("{fragments} fragments under construction are more than {MAX_FRAGMENTS}");
        let help =
            format!("they are {readouts} readout units x {builders} builders x {slots} slots: lower `builder.slots`");
        Problem::new(message, help)
            .at(view.origin("builder.slots"), "slots")
            .at(view.origin("builder.units"), "builders")
            .at(view.origin("readout.units"), "readout units")
    })
}

fn buffer_bytes(view: View<'_>) -> Option<Problem> {
    let (buffer, largest): (ByteCount, ByteCount) =
        (view.quantity("readout.buffer_bytes"), view.quantity("readout.max_fragment"));
    (buffer < largest).then(|| {
        let message = format!("`readout.buffer_bytes` of {buffer} cannot hold one fragment of {largest}");
        Problem::new(message, "raise `readout.buffer_bytes`, or lower `readout.max_fragment`")
            .at(view.origin("readout.buffer_bytes"), "too small")
            .at(view.origin("readout.max_fragment"), "largest fragment")
    })
}

fn end_of_run(view: View<'_>) -> Option<Problem> {
    let ends = ["trigger.events", "trigger.duration"].iter().any(|path| view.0.at(path).is_some());
    if ends || view.text("trigger.type") == "data" {
        return None;
    }
    let help = "say when to stop: add events = 100_000 or duration = \"10 s\" to [trigger]";
    Some(Problem::new("the run has no end", help).at(view.origin("trigger"), "neither `events` nor `duration`"))
}

fn warmup(view: View<'_>) -> Option<Problem> {
    let (warmup, duration): (Span, Span) =
        (view.maybe_quantity("run.warmup")?, view.maybe_quantity("trigger.duration")?);
    (warmup >= duration).then(|| {
        let message = format!("`run.warmup` of {warmup} leaves nothing of `trigger.duration` of {duration} to measure");
        Problem::new(message, "shorten `warmup`, or lengthen `duration`")
            .at(view.origin("run.warmup"), "too long")
            .at(view.origin("trigger.duration"), "whole run")
    })
}

/// The sources that units have, each once, with the place of its `type`.
fn used_sources(view: View<'_>) -> Vec<View<'_>> {
    let (own, units) = (view.list("readout.unit"), view.integer::<usize>("readout.units"));
    let shared = view.0.at("readout.source").filter(|_| own.len() < units);
    own.iter().filter_map(|unit| unit.at("source")).chain(shared).map(View).collect()
}

fn is_live(source: View<'_>) -> bool {
    matches!(source.text("type"), "tcp" | "udp")
}

/// Trigger and sources must fit each other.
fn trigger(view: View<'_>) -> Option<Problem> {
    let kind = view.text("trigger.type");
    let used = used_sources(view);
    let is_data = |source: &&View<'_>| matches!(source.text("type"), "cms-fed" | "trace") || is_live(**source);
    let Some(data) = used.iter().find(is_data) else {
        let help =
            "write type = \"free-running\" or type = \"rate\" in [trigger], or give a unit recorded or live data";
        let problem = Problem::new("the trigger waits for data, but every source is generated", help);
        return (kind == "data").then(|| problem.at(view.origin("trigger.type"), "no source has data"));
    };
    let name = data.text("type");
    if kind == "data" {
        return None;
    }
    if let Some(live) = used.iter().find(|source| is_live(**source)) {
        let message = format!("live front ends cannot be triggered by the trigger {kind:?}");
        let help = "they decide when there is an event: leave `type` out of [trigger], or write type = \"data\"";
        return Some(
            Problem::new(message, help)
                .at(view.origin("trigger.type"), "this trigger")
                .at(live.origin("type"), "live source"),
        );
    }
    view.0.at("trigger.events").is_none().then(|| {
        let message = format!("the trigger {kind:?} does not know how many events the {name:?} source has");
        let help =
            "add events = ... to [trigger], at most what the file holds, or write type = \"data\" to build all of it";
        Problem::new(message, help)
            .at(view.origin("trigger.type").or_else(|| view.origin("trigger")), "this trigger")
            .at(data.origin("type"), "recorded source")
    })
}

/// Sizes of generated fragments must be possible.
fn sources(view: View<'_>) -> Vec<Problem> {
    let limit: ByteCount = view.quantity("readout.max_fragment");
    let too_large = |source: View<'_>, key: &str| {
        let size: ByteCount = source.maybe_quantity(key)?;
        (size > limit).then(|| {
            let message = format!("`{key}` of {size} is above the largest fragment of {limit}");
            let help = format!("lower `{key}`, or raise `readout.max_fragment` in [readout]");
            Problem::new(message, help)
                .at(source.origin(key), "too large")
                .at(view.origin("readout.max_fragment"), "largest fragment")
        })
    };
    let used = used_sources(view);
    let swapped = used.iter().filter_map(|source| {
        let (min, max): (ByteCount, ByteCount) = (source.maybe_quantity("min")?, source.maybe_quantity("max")?);
        (min > max).then(|| {
            Problem::new(format!("`min` of {min} is above `max` of {max}"), "swap the two")
                .at(source.origin("min"), "min")
                .at(source.origin("max"), "max")
        })
    });
    let large = used.iter().flat_map(|&source| ["size", "max", "mean"].map(|key| too_large(source, key)));
    swapped.chain(large.flatten()).take(MAX_FOUND).collect()
}

/// No two units can listen on one address.
fn listeners(view: View<'_>) -> Vec<Problem> {
    let mut seen = HashMap::new();
    let mut problems = Vec::new();
    for index in 0..view.integer::<usize>("readout.units") {
        let Some(source) = view.source(index).map(View).filter(|source| is_live(*source)) else { continue };
        let address = source.text("listen");
        if address.ends_with(":0") {
            continue;
        }
        if let Some((first, other)) = seen.insert((source.text("type"), address), (index, source)) {
            let message = format!("readout units {first} and {index} both listen on {address:?}");
            let help = "give each unit a table [[readout.unit]] with an address of its own";
            let mut problem = Problem::new(message, help).at(source.origin("listen"), "taken");
            if source.origin("listen") != other.origin("listen") {
                problem = problem.at(other.origin("listen"), format!("unit {first}"));
            }
            problems.push(problem);
            if problems.len() >= MAX_FOUND {
                break;
            }
        }
    }
    problems
}

fn fault(view: View<'_>, fault: View<'_>) -> Option<Problem> {
    let (name, action) = (fault.text("node"), fault.text("action"));
    let (readouts, builders) = (view.integer::<u16>("readout.units"), view.integer::<u16>("builder.units"));
    if unit(name).and_then(|unit| node_id(unit, readouts, builders)).is_none() {
        let message = format!("there is no node {name:?} in this event builder");
        let help = format!("it has evm, ru0 to ru{} and bu0 to bu{}", readouts - 1, builders - 1);
        return Some(Problem::new(message, help).at(fault.origin("node"), "no such node"));
    }
    let wanted = match action {
        "kill" => return None,
        "slow-disk" => "bu",
        _ => "ru",
    };
    if name.starts_with(wanted) {
        return (action == "slow-disk").then(|| nothing_stored(view, fault)).flatten();
    }
    let message = format!("the fault {action:?} cannot happen to {name:?}");
    let (help, label) = match wanted {
        "bu" => (
            "it is done to what a builder unit stores: write node = \"bu0\" or another builder unit",
            "stores no events",
        ),
        _ => (
            "it is done to the fragments that a readout unit sends: write node = \"ru0\" or another readout unit",
            "sends no fragments",
        ),
    };
    Some(Problem::new(message, help).at(fault.origin("node"), label))
}

/// Where nothing is kept, no disk is slow.
fn nothing_stored(view: View<'_>, fault: View<'_>) -> Option<Problem> {
    let keeps_none = view.maybe_integer::<u64>("storage.keep.one_in").is_none() && view.text("storage.keep") == "none";
    keeps_none.then(|| {
        let help = "write keep = \"all\" or keep = { one_in = N } in [storage], or leave the fault out";
        Problem::new("a disk cannot be slow when nothing is stored", help)
            .at(fault.origin("action"), "slow disk")
            .at(view.origin("storage.keep"), "nothing is kept")
    })
}
