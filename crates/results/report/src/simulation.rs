//! Summary of a simulation: results, and blocked links.

use crate::{
    connections, faults, network_faults, rates, stages,
    table::{Column as Shown, Table},
    text::{aligned, hanging, metric, micros, per_destination, percent},
    verdict::verdict,
};
use evb_record::{Background, CpuRecord, KnownMap, LinkRecord, Network, Record, Simulation};
use std::fmt::Write as _;

/// Most links in the table of blocked links.
const MOST_LINKS: usize = 8;
/// Most kinds of work that are shown.
const MOST_WORK: usize = 4;
/// Most maps of mappers that are shown.
const MOST_MAPS: usize = 4;

/// The summary of a simulation: totals, the links that block most and the verdict. For traffic that builds no events it
/// counts messages. A record of a real run has no network: its transport and its totals are shown.
pub fn simulation_summary(record: &Record, width: usize) -> String {
    let Record { experiment, readout_units, builder_units, protocol, seed, version, .. } = record;
    let transport = || format!("{}, ", record.transport);
    let network = record.simulation.as_ref().map_or_else(transport, |simulation| names(&simulation.network));
    let what = format!("{readout_units} x {builder_units}, {protocol}, {network}seed {seed}, evb {version}");
    let mut text = hanging("", &format!("{experiment}: {what}"), width);
    for (key, value) in &record.sweep {
        let _infallible = writeln!(text, "  {key} = {value}");
    }
    text.push('\n');
    text.push_str(&aligned(&totals(record), width));
    if let Some(stages) = &record.stages {
        let _infallible = writeln!(text, "\n{}", stages::table(stages, width));
    } else if let Some(simulation) = &record.simulation {
        text.push_str(&where_it_blocks(&simulation.network, width));
    }
    text.push_str(&verdict(record));
    text
}

/// The known parts of `preset topology, routing, flow, `.
fn names(network: &Network) -> String {
    let made = [&network.preset, &network.topology].map(String::as_str);
    let made = if made[0] == made[1] { made[0].to_owned() } else { made.join(" ").trim().to_owned() };
    let known = [&made, &network.routing, &network.flow].into_iter().filter(|name| !name.is_empty());
    known.map(|name| format!("{name}, ")).collect()
}

fn totals(record: &Record) -> Vec<(&'static str, String)> {
    let mut rows = accounts(record);
    let latency = &record.latency_us;
    let run_time = || format!("{:.3} s", record.seconds);
    let time = record.simulation.as_ref().map_or_else(run_time, |simulation| time(record.seconds, simulation));
    rows.push(("time", time));
    rows.extend(rates::rows(record));
    rows.extend(rates::throughput(record));
    rows.extend(per_destination(record).map(|(mean, least, most)| {
        ("destinations", format!("{}B/s on average, {}B/s to {}B/s", metric(mean), metric(least), metric(most)))
    }));
    if let Some(simulation) = record.simulation.as_ref().filter(|simulation| simulation.packets > 0) {
        rows.push(("efficiency", efficiency(record, simulation)));
    }
    rows.extend(record.simulation.iter().filter_map(|simulation| simulation.cpu.as_ref()).flat_map(processors));
    let [p50, p99, max] = [latency.p50, latency.p99, latency.max].map(micros);
    rows.push(match latency.max > 0.0 {
        true => ("latency", format!("{p50} us median, {p99} us p99, {max} us max")),
        false => ("latency", "none was timed".into()),
    });
    rows.extend(record.simulation.iter().flat_map(|simulation| simulation.background.iter().map(background)));
    rows.extend(record.simulation.iter().flat_map(|simulation| losses(&simulation.network)));
    rows.extend(record.simulation.iter().flat_map(|simulation| maps(&simulation.network)));
    rows.extend(record.simulation.iter().flat_map(|simulation| network_faults::rows(&simulation.network)));
    rows
}

/// The efficiency by goodput, and that of all packets where it is higher.
fn efficiency(record: &Record, simulation: &Simulation) -> String {
    let useful = percent(rates::efficiency(simulation));
    if rates::has_waste(record) || rates::efficiency(simulation) < 0.99 * simulation.efficiency {
        return format!("{useful} % by goodput; {} % of all packets that arrived", percent(simulation.efficiency));
    }
    format!("{} %", percent(simulation.efficiency))
}

/// Number of events or messages by outcome, without those that did not occur.
fn accounts(record: &Record) -> Vec<(&'static str, String)> {
    let events = &record.events;
    let (begun, ended) = if record.unit() == "event" { ("triggered", "built") } else { ("sent", "delivered") };
    let mut rows = vec![(begun, events.triggered.to_string()), (ended, events.built.to_string())];
    let others = [
        ("incomplete", events.incomplete),
        ("rejected", events.rejected),
        ("lost", events.lost),
        ("reassigned", events.reassigned),
        ("inhibited", record.trigger.inhibited),
    ];
    rows.extend(others.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name, count.to_string())));
    rows.extend(faults::rows(record));
    rows
}

fn time(seconds: f64, simulation: &Simulation) -> String {
    let Simulation { wall_seconds, warmup_seconds, packet_hops, .. } = *simulation;
    let warmup = if warmup_seconds > 0.0 { format!(" after {warmup_seconds:.6} s of warm-up") } else { String::new() };
    let speed = if wall_seconds > 0.0 { packet_hops as f64 / wall_seconds } else { 0.0 };
    format!("{seconds:.6} s simulated{warmup}, in {wall_seconds:.3} s: {} packet-hops/s", metric(speed).trim_end())
}

/// The loads of the workers, the work that takes most of their time, and the band of the fit.
fn processors(cpu: &CpuRecord) -> Vec<(&'static str, String)> {
    let loads: Vec<_> = cpu.workers.iter().map(|worker| worker.load).collect();
    let (most, sum) = (loads.iter().copied().fold(0.0, f64::max), loads.iter().sum::<f64>());
    let mean = sum / loads.len().max(1) as f64;
    let all: f64 = cpu.work.iter().map(|work| work.spent_seconds).sum();
    let mut work: Vec<_> = cpu.work.iter().filter(|work| work.spent_seconds > 0.0).collect();
    work.sort_by(|one, other| other.spent_seconds.total_cmp(&one.spent_seconds));
    let shares =
        work.iter().take(MOST_WORK).map(|work| format!("{} {} %", work.item, percent(work.spent_seconds / all)));
    let workers = format!("{}; {} % busy on average, {} % at most", loads.len(), percent(mean), percent(most));
    let mut rows = vec![("workers", workers)];
    rows.extend((all > 0.0).then(|| ("work", shares.collect::<Vec<_>>().join(", "))));
    let band = |error: f64| format!("fitted costs: nine in ten event rates were within {error:.0} %");
    rows.extend(cpu.fit_error_percent.map(|error| ("band", band(error))));
    rows
}

/// What background traffic carried.
fn background(background: &Background) -> (&'static str, String) {
    let Background { name, throughput_bytes_per_s, offered_bytes_per_s, latency_us, lost, refused, .. } = background;
    let mut parts = vec![format!("{name}: {}B/s", metric(*throughput_bytes_per_s))];
    parts.extend(offered_bytes_per_s.map(|offered| format!(" of {}B/s offered", metric(offered))));
    let [p50, p99, max] = [latency_us.p50, latency_us.p99, latency_us.max].map(micros);
    parts.push(match latency_us.max > 0.0 {
        true => format!("; {p50} us median, {p99} us p99, {max} us max"),
        false => "; nothing arrived in the measured time".to_owned(),
    });
    let others = [("lost", *lost), ("refused", *refused)].into_iter().filter(|(_, count)| *count > 0);
    parts.extend(others.map(|(what, count)| format!("; {count} {what}")));
    ("background", parts.concat())
}

fn losses(network: &Network) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if network.lost_packets > 0 {
        rows.push(("dropped", format!("{} packets lost on the way", network.lost_packets)));
    }
    rows.extend(pauses(network));
    rows.extend(network.connections.iter().flat_map(connections::rows));
    if network.corrupted_packets > 0 {
        rows.push(("corrupted", format!("{} packets thrown away by their receivers", network.corrupted_packets)));
    }
    if network.flooded_packets > 0 {
        rows.push(("flooded", format!("{} copies at hosts that they were not for", network.flooded_packets)));
    }
    if !network.deadlock.is_empty() {
        rows.push(("deadlock", format!("{} links wait for each other in a ring", network.deadlock.len())));
    }
    rows
}

/// How far pauses spread, and what watchdogs did.
fn pauses(network: &Network) -> Vec<(&'static str, String)> {
    let paused = || network.links.iter().filter(|link| link.paused > 0.0);
    let Some(most) = paused().max_by(|a, b| a.paused.total_cmp(&b.paused)) else { return Vec::new() };
    let of_hosts = paused().filter(|link| is_of_host(link)).count();
    let chain = paused().map(|link| link.pause_chain).max().unwrap_or(0);
    let spread = format!(
        "{} links, {of_hosts} of them from hosts, up to {chain} in a row; {} for {} % of the time",
        paused().count(),
        most.name,
        percent(most.paused)
    );
    let sum = |count: fn(&LinkRecord) -> u64| network.links.iter().map(count).sum::<u64>();
    let (storms, dropped) = (sum(|link| link.storms), sum(|link| link.watchdog_dropped));
    let watchdog = (storms > 0).then(|| ("watchdog", format!("{storms} pause storms, {dropped} packets dropped")));
    [("paused", spread)].into_iter().chain(watchdog).collect()
}

/// True if a link begins at a host: its name does with `h` and a number.
fn is_of_host(link: &LinkRecord) -> bool {
    let number = link.name.strip_prefix('h').and_then(|name| name.split(['>', '.']).next());
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The newest maps of the mappers.
fn maps(network: &Network) -> Vec<(&'static str, String)> {
    let Some(mapping) = &network.mapping else { return Vec::new() };
    let map = |map: &KnownMap| {
        let KnownMap { leader, made_s, known_s, known_to, switches, hosts, cables } = map;
        let parts = format!("{switches} switches, {cables} cables between them, {hosts} ports of hosts");
        ("map", format!("of {leader} at {made_s:.6} s: {parts}; {known_to} ports know it by {known_s:.6} s"))
    };
    let older = mapping.maps.len().saturating_sub(MOST_MAPS);
    let what = match mapping.maps.len() {
        0 => "no map: they were still looking at the end".to_owned(),
        count => format!("{count} maps"),
    };
    let mappers = format!("{} messages, {what}", mapping.messages);
    [("mappers", mappers)].into_iter().chain(mapping.maps[older..].iter().map(map)).collect()
}

/// The links with the longest total waits: the cause comes before the links that wait for it.
fn where_it_blocks(network: &Network, width: usize) -> String {
    let waited = |link: &LinkRecord| link.mean_wait_us * link.packets as f64;
    let mut links: Vec<_> = network.links.iter().filter(|link| link.blocked > 0.0 || waited(link) > 0.0).collect();
    if links.is_empty() {
        return String::from("\nno packet was blocked or had to wait\n");
    }
    links.sort_by(|a, b| waited(b).total_cmp(&waited(a)).then(b.blocked.total_cmp(&a.blocked)));
    let rest = links.len().saturating_sub(MOST_LINKS);
    links.truncate(MOST_LINKS);
    let more = if rest > 0 { format!("and {rest} more links\n") } else { String::new() };
    format!("\nwhere it blocks\n{}\n{more}", link_table(&links, width))
}

/// Name and importance of a column, its number, and the format of the number.
type Column = (&'static str, u8, fn(&LinkRecord) -> f64, fn(f64) -> String);

const COLUMNS: [Column; 10] = [
    ("packets", 3, |link| link.packets as f64, whole),
    ("used %", 5, |link| link.used, percent),
    ("blocked %", 7, |link| link.blocked, percent),
    ("mean wait us", 8, |link| link.mean_wait_us, micros),
    ("most waiting", 4, |link| link.most_waiting as f64, whole),
    ("most bytes", 2, |link| link.most_bytes as f64, whole),
    ("dropped", 6, |link| link.dropped as f64, whole),
    ("paused %", 5, |link| link.paused, percent),
    ("pauses", 1, |link| link.pauses as f64, whole),
    ("ingress dropped", 6, |link| link.ingress_dropped as f64, whole),
];

fn whole(count: f64) -> String {
    format!("{count:.0}")
}

fn link_table(links: &[&LinkRecord], width: usize) -> String {
    let seen = COLUMNS.iter().filter(|(_, _, value, _)| links.iter().any(|link| value(link) != 0.0));
    let columns: Vec<_> = seen.collect();
    let numbers = columns.iter().map(|(name, importance, ..)| Shown::number(*name, *importance));
    let mut table = Table::new([Shown::word("link")].into_iter().chain(numbers));
    for link in links {
        let cells = columns.iter().map(|(_, _, value, write)| write(value(link)));
        table.row([link.name.clone()].into_iter().chain(cells));
    }
    table.draw(width)
}
