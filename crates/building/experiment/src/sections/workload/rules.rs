//! Rules on the keys of `[workload]`, among themselves and with the number of nodes. All of them are about traffic:
//! event building has no keys here.

use super::{Between, WORKLOAD, awaits_acknowledgement, is_slotted};
use crate::{
    diagnostics::Problem,
    limits::*,
    sections::{
        network::placement,
        source::{self, Feed},
    },
    view::View,
};

/// Checks all rules of a traffic workload.
pub(in crate::sections) fn check(view: View<'_>) -> Vec<Problem> {
    let rules = [
        load_and_rate,
        slots,
        end_of_traffic,
        live_sources,
        number_of_destinations,
        gather_sizes,
        processors,
        partners,
        acknowledgements,
    ];
    let single = rules.iter().filter_map(|rule| rule(view));
    single.chain(unknown_destinations(view)).take(MAX_FOUND).collect()
}

fn load_and_rate(view: View<'_>) -> Option<Problem> {
    (view.has("workload.load") && view.has("workload.rate")).then(|| {
        Problem::new("`workload.load` and `workload.rate` both set the load", "remove one of the two")
            .at(view.origin("workload.load"), "part of the rate of a link")
            .at(view.origin("workload.rate"), "messages per second")
    })
}

/// Only connections acknowledge.
fn acknowledgements(view: View<'_>) -> Option<Problem> {
    let connects = view.maybe_text("network.transport.type").is_some_and(|transport| transport != "none");
    (awaits_acknowledgement(view.below("workload")) && !connects).then(|| {
        let help = "describe the connections in `network.transport`, or write awaits = \"departure\"";
        Problem::new("nothing acknowledges the messages of the traffic", help)
            .at(view.origin("workload.awaits"), "without connections")
    })
}

/// Slots need the probability of a message, and senders on separate hosts.
fn slots(view: View<'_>) -> Option<Problem> {
    if !is_slotted(view.below("workload")) {
        return None;
    }
    let arrivals = view.origin("workload.arrivals");
    if view.text("workload.type") == "gather" {
        let problem =
            Problem::new("the events of `gather` come in no slots", "write arrivals = \"poisson\" or \"regular\"");
        return Some(problem.at(arrivals, "slots of the senders"));
    }
    if !view.has("workload.load") {
        let help = "add load = 0.5, the probability of a message in a slot, to [workload]; it replaces `rate`";
        return Some(Problem::new("slotted arrivals have no `load`", help).at(arrivals, "slots without a probability"));
    }
    let load = view.number("workload.load");
    (load > 1.0).then(|| {
        let message = format!("`workload.load` of {load} is not a probability of a message in a slot");
        Problem::new(message, "write at most 1, or arrivals = \"poisson\"").at(view.origin("workload.load"), "above 1")
    })
}

fn end_of_traffic(view: View<'_>) -> Option<Problem> {
    let ends = view.has("workload.messages") || view.has("trigger.duration");
    (!ends).then(|| {
        let help = "say when to stop: add messages = 1_000 to [workload], or duration = \"10 ms\" to [trigger]";
        Problem::new("the traffic has no end", help).at(view.origin("workload"), "no `messages`")
    })
}

fn live_sources(view: View<'_>) -> Option<Problem> {
    let live = source::used(view).into_iter().find(|table| source::feed(*table) == Feed::Live)?;
    let help = "give the readout units sizes from a generated or recorded source, such as source = { type = \"fixed\", \
                size = \"2 kB\" }";
    let message = format!("the sizes of the traffic {:?} cannot come from live front ends", view.text("workload.type"));
    Some(Problem::new(message, help).at(live.origin("type"), "live source").at(view.origin("workload.type"), "traffic"))
}

fn number_of_destinations(view: View<'_>) -> Option<Problem> {
    let given = view.has("workload.destinations").then(|| view.list("workload.destinations").len())?;
    let senders = view.integer::<usize>("readout.units");
    (given != senders).then(|| {
        let message = format!("{given} destinations for {senders} senders");
        Problem::new(message, "give the index of one receiver for each readout unit, such as [0, 0, 2] for three")
            .at(view.origin("workload.destinations"), "one for each sender")
            .at(view.origin("readout.units"), "senders")
    })
}

fn unknown_destinations(view: View<'_>) -> Vec<Problem> {
    let receivers = view.integer::<i64>("builder.units");
    let unknown = view.list("workload.destinations").iter().filter_map(|node| Some((node, node.integer()?)));
    unknown
        .filter(|(_, index)| *index >= receivers)
        .take(MAX_FOUND)
        .map(|(node, index)| {
            let message = format!("there is no receiver {index}");
            Problem::new(message, format!("the {receivers} builder units are 0 to {}", receivers - 1))
                .at(node.origin, "no such builder unit")
        })
        .collect()
}

/// The nodes must be those that the traffic wants.
fn partners(view: View<'_>) -> Option<Problem> {
    match WORKLOAD.of(view.below("workload")).as_ref()?.between {
        Between::Any => None,
        Between::Hosts => other_host(view),
        Between::Pairs => one_to_one(view),
        Between::OneSender => one_sender(view),
        Between::OneReceiver => one_receiver(view),
    }
}

/// Random traffic stays off the sender's own host.
fn other_host(view: View<'_>) -> Option<Problem> {
    let (receivers, senders) = (view.integer::<u16>("builder.units"), view.integer::<u16>("readout.units"));
    let placement = placement::plan(view);
    let shares = placement.builder.checked_sub(placement.readout).is_some_and(|sender| sender < senders);
    (receivers == 1 && shares).then(|| {
        let message =
            format!("the one receiver shares host {} with a sender, which then has no receiver", placement.builder);
        let help =
            "random traffic never goes to the sender's own host: add receivers, or move them in network.placement";
        Problem::new(message, help)
            .at(view.origin("network.placement.builder"), "host of the receiver")
            .at(view.origin("builder.units"), "receivers")
    })
}

/// Nodes that talk in pairs.
fn one_to_one(view: View<'_>) -> Option<Problem> {
    let (senders, receivers) = (view.integer::<u16>("readout.units"), view.integer::<u16>("builder.units"));
    let workload = view.text("workload.type");
    (senders != receivers).then(|| {
        let message =
            format!("{workload:?} is between sender n and receiver n, but there are {senders} and {receivers}");
        Problem::new(message, "give as many builder units as readout units")
            .at(view.origin("readout.units"), "senders")
            .at(view.origin("builder.units"), "receivers")
    })
}

fn one_sender(view: View<'_>) -> Option<Problem> {
    let (workload, senders) = (view.text("workload.type"), view.integer::<u16>("readout.units"));
    (senders != 1).then(|| {
        let message = format!("{workload:?} has one sender, not {senders}");
        Problem::new(message, "write units = 1 in [readout]").at(view.origin("readout.units"), "senders")
    })
}

fn one_receiver(view: View<'_>) -> Option<Problem> {
    let (workload, receivers) = (view.text("workload.type"), view.integer::<u16>("builder.units"));
    (receivers != 1).then(|| {
        let message = format!("{workload:?} has one receiver, not {receivers}");
        Problem::new(message, "write units = 1 in [builder]").at(view.origin("builder.units"), "receivers")
    })
}

fn gather_sizes(view: View<'_>) -> Option<Problem> {
    let (least, most) = (view.maybe_integer::<i64>("workload.least")?, view.maybe_integer::<i64>("workload.most")?);
    let senders = view.integer::<i64>("readout.units");
    if least > most {
        let message = format!("`workload.least` of {least} is above `workload.most` of {most}");
        let problem = Problem::new(message, "swap the two").at(view.origin("workload.least"), "least");
        return Some(problem.at(view.origin("workload.most"), "most"));
    }
    (most > senders).then(|| {
        let message = format!("`workload.most` of {most} is above the number of senders, {senders}");
        Problem::new(message, format!("a processor gathers from each readout unit once: write {senders} or less"))
            .at(view.origin("workload.most"), "too many")
            .at(view.origin("readout.units"), "senders")
    })
}

fn processors(view: View<'_>) -> Option<Problem> {
    let (wanted, there) = (view.maybe_integer::<i64>("workload.processors")?, view.integer::<i64>("builder.units"));
    (wanted > there).then(|| {
        let message = format!("`workload.processors` of {wanted} is above the number of receivers, {there}");
        Problem::new(message, format!("the builder units are the processors: write {there} or less"))
            .at(view.origin("workload.processors"), "too many")
            .at(view.origin("builder.units"), "receivers")
    })
}
