//! Rules on the tables of `[[background]]`, among themselves and with the rest of the file.

use super::{BACKGROUND, Hosts, PRIORITY, sides};
use crate::{
    diagnostics::Problem,
    limits::*,
    plan::BackgroundPriority,
    sections::{counts, workload},
    tree::Node,
    view::View,
};
use evb_core::{ByteCount, Span};
use evb_patterns::Pattern;
use std::collections::HashMap;

/// A rule on one table.
type TableRule = fn(View<'_>, View<'_>) -> Option<Problem>;

/// Checks all rules but those on hosts.
pub(in crate::sections) fn check(view: View<'_>) -> Vec<Problem> {
    let Some(first) = view.list("background").first() else { return Vec::new() };
    let whole = [stages, end, too_many_nodes, same_names].iter().filter_map(|rule| rule(view, View(first)));
    let rules: [TableRule; 7] =
        [load_and_rate, until, sizes, number_of_destinations, unknown_destination, own_host, priority];
    let tables = view.list("background").iter().map(View);
    let single = tables.flat_map(|table| rules.iter().filter_map(move |rule| rule(view, table)));
    whole.chain(single).take(MAX_FOUND).collect()
}

/// All senders and receivers must have hosts, of which the network has this many.
pub(in crate::sections) fn hosts(view: View<'_>, hosts: usize) -> Vec<Problem> {
    let beyond = |table: View<'_>, side: &str, Hosts { first, count }: Hosts| {
        let last = usize::from(first) + usize::from(count) - 1;
        (last >= hosts).then(|| {
            let name = table.text("name");
            let of = match count {
                1 => format!("is no host {first}"),
                _ => format!("are no hosts {first} to {last}"),
            };
            let message = format!("there {of} for the {side} of {name:?}: the network has {hosts} hosts");
            let help = "hosts are counted from 0: use a larger network.topology, fewer hosts, or another `first`";
            Problem::new(message, help)
                .at(table.origin(side), "no such hosts")
                .at(view.origin("network.topology"), "too small")
        })
    };
    let of_table = |table: View<'_>| {
        let [from, to] = sides(view, table);
        // The hosts of units have a rule of their own.
        let is_own = |side: &str| table.text(&format!("{side}.on")) == super::OTHERS;
        [("senders", from), ("receivers", to)].into_iter().filter(move |(side, _)| is_own(side)).collect::<Vec<_>>()
    };
    let tables = view.list("background").iter().map(View);
    tables.flat_map(|table| of_table(table).into_iter().filter_map(move |(side, of)| beyond(table, side, of))).collect()
}

fn stages(view: View<'_>, first: View<'_>) -> Option<Problem> {
    counts::slices(view)?;
    let help = "remove [[background]], or [first_stage]";
    let problem =
        Problem::new("each event builder of two stages has a network of its own, without background traffic", help);
    Some(problem.at(first.0.origin, "background traffic").at(view.origin("first_stage.slices"), "two stages"))
}

/// Background traffic would go on where a workload ends by its number of messages.
fn end(view: View<'_>, first: View<'_>) -> Option<Problem> {
    if !workload::is_traffic(view) {
        return None;
    }
    let problem = |message: &str, help: &str| Problem::new(message, help).at(first.0.origin, "background traffic");
    if view.has("workload.messages") {
        let found = problem(
            "traffic that ends after `messages` cannot have background traffic",
            "write duration = \"10 ms\" in [trigger] in place of `messages`",
        );
        return Some(found.at(view.origin("workload.messages"), "ends by number"));
    }
    None
}

fn too_many_nodes(view: View<'_>, first: View<'_>) -> Option<Problem> {
    let tables = view.list("background").iter().map(View);
    let of_background: i64 = tables.flat_map(|table| sides(view, table)).map(|side| i64::from(side.count)).sum();
    let all = 1 + view.integer::<i64>("readout.units") + view.integer::<i64>("builder.units") + of_background;
    (all > MAX_NODES).then(|| {
        let message = format!("{all} nodes are too many: {of_background} of them are of background traffic");
        let problem = Problem::new(message, format!("have at most {MAX_NODES} nodes: let fewer hosts send or receive"));
        problem.at(first.0.origin, "background traffic")
    })
}

fn same_names(view: View<'_>, _: View<'_>) -> Option<Problem> {
    let mut known = HashMap::new();
    view.list("background").iter().map(View).find_map(|table| {
        let name = table.text("name");
        let before = known.insert(name, table.origin("name"))?;
        let problem =
            Problem::new(format!("two tables of background traffic are called {name:?}"), "rename one of them");
        Some(problem.at(before, "first").at(table.origin("name"), "second"))
    })
}

fn load_and_rate(_: View<'_>, table: View<'_>) -> Option<Problem> {
    (table.has("load") && table.has("rate")).then(|| {
        Problem::new("`load` and `rate` both set the load of background traffic", "remove one of the two")
            .at(table.origin("load"), "part of the rate of a link")
            .at(table.origin("rate"), "messages per second")
    })
}

fn until(_: View<'_>, table: View<'_>) -> Option<Problem> {
    let (from, until) = (table.quantity::<Span>("from"), table.maybe_quantity::<Span>("until")?);
    (until <= from).then(|| {
        Problem::new("background traffic ends before it begins", "write an `until` after `from`, or leave it out")
            .at(table.origin("until"), "its end")
            .at(table.origin("from"), "its beginning")
    })
}

fn sizes(_: View<'_>, table: View<'_>) -> Option<Problem> {
    let message = table.below("message");
    let (min, max): (ByteCount, ByteCount) = (message.maybe_quantity("min")?, message.maybe_quantity("max")?);
    (min > max).then(|| {
        Problem::new(format!("`min` of {min} is above `max` of {max}"), "swap the two")
            .at(message.origin("min"), "min")
            .at(message.origin("max"), "max")
    })
}

fn number_of_destinations(view: View<'_>, table: View<'_>) -> Option<Problem> {
    let given = table.has("destinations").then(|| table.list("destinations").len())?;
    let senders = sides(view, table)[0].count;
    (given != usize::from(senders)).then(|| {
        let message = format!("{given} destinations for {senders} senders of background traffic");
        Problem::new(message, "give the index of one receiver for each sender, or leave `destinations` out")
            .at(table.origin("destinations"), "one for each sender")
            .at(table.origin("senders"), "senders")
    })
}

fn unknown_destination(view: View<'_>, table: View<'_>) -> Option<Problem> {
    let receivers = sides(view, table)[1].count;
    let index = |node: &Node| node.integer().filter(|&index| index >= i64::from(receivers));
    let (node, index) = table.list("destinations").iter().find_map(|node| Some((node, index(node)?)))?;
    let help = format!("the {receivers} receivers of this table are 0 to {}", receivers - 1);
    Some(Problem::new(format!("there is no receiver {index}"), help).at(node.origin, "no such receiver"))
}

/// Random traffic stays off the sender's own host.
fn own_host(view: View<'_>, table: View<'_>) -> Option<Problem> {
    let [from, to] = sides(view, table);
    let is_random = BACKGROUND.of(table)(table, (from.count, to.count)) == Pattern::Random;
    let shares = to.first.checked_sub(from.first).is_some_and(|sender| sender < from.count);
    (is_random && to.count == 1 && shares).then(|| {
        let message = format!("the one receiver is on host {} of a sender, which then has no receiver", to.first);
        let help = "random traffic never goes to the sender's own host: add receivers, or move them to another host";
        Problem::new(message, help)
            .at(table.origin("receivers"), "one receiver")
            .at(table.origin("senders"), "one of these hosts")
    })
}

/// A lower priority needs another one above it.
fn priority(view: View<'_>, table: View<'_>) -> Option<Problem> {
    let flow = view.below("network.flow");
    let by_priority = flow.maybe_text("channel") == Some("priority");
    let channels = flow.maybe_integer::<i64>("virtual_channels").filter(|_| by_priority);
    let priorities = flow.maybe_integer::<i64>("priorities").or(channels).unwrap_or(1);
    (PRIORITY.at(table, "priority") == BackgroundPriority::Lower && priorities < 2).then(|| {
        let help = "write priorities = 2 in [network.flow] of \"store-and-forward\", or virtual_channels = 2 with channel = \
                    \"priority\" of \"cut-through\"";
        Problem::new("no link of this network has a lower priority", help)
            .at(table.origin("priority"), "lower than what")
            .at(view.origin("network.flow"), "one priority")
    })
}
