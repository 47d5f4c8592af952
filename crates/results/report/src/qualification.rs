//! The test of a fabric for the terminal.

use crate::{
    table::{ALWAYS, Column, Table},
    text::{aligned, hanging, metric, nanos, significant},
};
use evb_record::{LinkSpeed, LinkVerdict, PairOfNodes, Qualification};

/// Most links that are listed for each verdict; the record has all.
const MOST_LISTED: usize = 20;

/// What is usual, the links that are not, the limits that are not met, and the verdict.
pub fn qualification_summary(record: &Qualification, width: usize) -> String {
    let (transport, nodes, links) = (&record.transport, record.nodes, record.links.len());
    let head = format!("all pairs over {transport}: {nodes} nodes, {links} links in {} rounds\n\n", record.rounds);
    let links = listed(record).map(|table| table.draw(width) + "\n\n").unwrap_or_default();
    let limits = list("limits that are not met", &record.not_accepted, width);
    let notes = list("notes", &record.notes, width);
    format!("{head}{}\n{links}{limits}{notes}{}", speeds(record, width), hanging("", &verdict(record), width))
}

fn list(title: &str, texts: &[String], width: usize) -> String {
    let lines: String = texts.iter().map(|text| hanging("  ", text, width)).collect();
    if texts.is_empty() { lines } else { format!("{title}\n{lines}\n") }
}

/// The usual speeds: of all links at once, and of links alone if some were measured alone.
fn speeds(record: &Qualification, width: usize) -> String {
    let times = |speed: &LinkSpeed| {
        format!("median {}, mean {}", nanos(speed.half_round_trip_ns), nanos(speed.mean_half_round_trip_ns))
    };
    let rate = |speed: &LinkSpeed| metric(speed.bytes_per_s) + "B/s";
    let both = |of: &dyn Fn(&LinkSpeed) -> String| match &record.usual_alone {
        Some(alone) => format!("{}; alone {}", of(&record.usual), of(alone)),
        None => of(&record.usual),
    };
    let [size, bulk] = [record.size_bytes, record.bulk_bytes];
    let rows = [
        ("latency", format!("half of a round trip of {size} B: {}", both(&times))),
        ("throughput", format!("of {bulk} B, in the slower direction: {}", both(&rate))),
    ];
    aligned(&rows, width)
}

/// The links that are not as usual, the worst first.
fn listed(record: &Qualification) -> Option<Table> {
    let mut table = Table::new([
        Column::word("link"),
        Column::number("half trip", ALWAYS),
        Column::number("longest", 1),
        Column::number("there", ALWAYS),
        Column::number("back", ALWAYS),
        Column::number("slower", ALWAYS),
        Column::word("verdict"),
    ]);
    let mut rows = 0;
    for verdict in [LinkVerdict::Bad, LinkVerdict::Disturbed] {
        let mut links: Vec<_> = record.with(verdict).collect();
        let slower = |link: &PairOfNodes| link.slower.unwrap_or(f64::INFINITY);
        links.sort_by(|one, other| slower(other).total_cmp(&slower(one)));
        for link in links.into_iter().take(MOST_LISTED) {
            rows += 1;
            table.row(cells(record, link));
        }
    }
    (rows > 0).then_some(table)
}

fn cells(record: &Qualification, link: &PairOfNodes) -> [String; 7] {
    let [first, second] = link.nodes.map(|node| record.name(node));
    let bad = link.verdict == LinkVerdict::Bad;
    [
        format!("{first} - {second}"),
        half_trip(link, link.half_round_trip_ns.p50),
        half_trip(link, link.half_round_trip_ns.max),
        metric(link.bytes_per_s[0]) + "B/s",
        metric(link.bytes_per_s[1]) + "B/s",
        slower(link),
        format!("{}{}", if bad { "! " } else { "" }, link.verdict.name()),
    ]
}

fn half_trip(link: &PairOfNodes, ns: f64) -> String {
    if link.half_round_trip_ns.samples > 0 { nanos(ns) } else { "none".into() }
}

/// The factor by which a link is slower. One that stood still for a tenth of the time has none.
fn slower(link: &PairOfNodes) -> String {
    match link.slower {
        Some(factor) => significant(factor, 2) + " x",
        None if link.half_round_trip_ns.samples == 0 => "nothing came".into(),
        None => "stood still".into(),
    }
}

fn verdict(record: &Qualification) -> String {
    let count = |verdict| record.with(verdict).count();
    let (bad, disturbed) = (count(LinkVerdict::Bad), count(LinkVerdict::Disturbed));
    let links = |count: usize| if count == 1 { "1 link".to_owned() } else { format!("{count} links") };
    let lost: u64 = record.links.iter().map(|link| link.lost).sum();
    let mut parts = vec![match bad {
        0 => "no link is bad".to_owned(),
        1 => "1 link is bad".to_owned(),
        _ => format!("{bad} links are bad"),
    }];
    parts.extend((disturbed > 0).then(|| format!("{} slower at first, and as usual alone", links(disturbed))));
    parts.extend((lost > 0).then(|| format!("{lost} messages lost or corrupted")));
    parts.extend((!record.not_accepted.is_empty()).then(|| "the fabric is not accepted".to_owned()));
    format!("{}, after {:.1} s", parts.join("; "), record.seconds)
}
