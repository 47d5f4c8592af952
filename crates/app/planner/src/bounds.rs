//! What no traffic of this size can pass: bounds that need no simulation.

use crate::{
    candidate::{Candidate, host_rate},
    demand::Demand,
    requirements::Failure,
};

use evb_report::metric;

/// The tightest bound on the load of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    /// The load that no traffic exceeds, as a factor of the demand.
    pub(crate) load: f64,
    /// The figures behind it.
    pub(crate) reason: String,
}

/// The tightest bound. With failures the rest of the network has to carry `reserve` less: the demand without its headroom.
pub(crate) fn bound(candidate: &Candidate<'_>, demand: &Demand, survive: &[Failure], reserve: f64) -> Bound {
    let uplinks = uplink_bounds(candidate, demand, survive, reserve);
    let all = host_bounds(candidate, demand).into_iter().chain(uplinks);
    all.min_by(|a, b| a.load.total_cmp(&b.load)).expect("there are hosts")
}

/// The loads that the uplinks of each level carry, without a failure and then with each one.
pub(crate) fn uplink_loads(candidate: &Candidate<'_>, demand: &Demand, survive: &[Failure], reserve: f64) -> Vec<f64> {
    uplink_bounds(candidate, demand, survive, reserve).map(|bound| bound.load).collect()
}

fn uplink_bounds(
    candidate: &Candidate<'_>,
    demand: &Demand,
    survive: &[Failure],
    reserve: f64,
) -> impl Iterator<Item = Bound> {
    (0..candidate.levels.len() - 1).flat_map(move |level| {
        let failures = survive.iter().map(move |&failure| (Some(failure), reserve));
        [(None, 1.0)]
            .into_iter()
            .chain(failures)
            .map(move |(failure, factor)| uplink_bound(candidate, demand, level, failure, factor))
    })
}

/// The cables of hosts.
fn host_bounds(candidate: &Candidate<'_>, demand: &Demand) -> Vec<Bound> {
    let usual = host_rate(candidate.interface, demand);
    let rate = |host: usize| demand.fixed[host].unwrap_or(usual);
    let of = |host: usize| {
        let crossing = demand.crossing(host..host + 1);
        let (bytes, verb) = match crossing.out > crossing.into {
            true => (crossing.out, "sends"),
            false => (crossing.into, "receives"),
        };
        let carries = rate(host).as_bytes_per_second();
        let reason = format!(
            "host {host} {verb} {}B/s, and its cable of {} carries {}B/s",
            metric(bytes),
            rate(host),
            metric(carries)
        );
        Bound { load: carries / bytes.max(1e-9), reason }
    };
    (0..usize::from(demand.hosts())).map(of).collect()
}

/// The cables of one part of the tree to the level above, the fullest part.
fn uplink_bound(
    candidate: &Candidate<'_>,
    demand: &Demand,
    index: usize,
    failure: Option<Failure>,
    reserve: f64,
) -> Bound {
    let level = &candidate.levels[index];
    let width = f64::from(candidate.width(index));
    let cable = level.rate.as_bytes_per_second();
    let lost = match failure {
        None => 0.0,
        Some(Failure::Cable) => cable,
        // All cables from one part of the tree to one switch above it.
        Some(Failure::Switch) => cable * f64::from(level.links),
    };
    let carries = (level.up_rate() * width - lost).max(0.0);
    let crossing = |part: u32| {
        let crossing = demand.crossing(candidate.hosts_below(index, part));
        crossing.out.max(crossing.into)
    };
    let parts = candidate.subtrees(index);
    let (part, most) =
        (0..parts).map(|part| (part, crossing(part))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let needed = most * reserve;
    let what = if index == 0 { "leaf" } else { "group of leaves" };
    let cables = format!("{} cables of {}", level.uplinks() * candidate.width(index), level.rate);
    let without = match failure {
        None => String::new(),
        Some(Failure::Cable) => " without one cable".to_owned(),
        Some(Failure::Switch) => " without one switch above".to_owned(),
    };
    let reason = format!(
        "{}B/s cross the uplinks of {what} {part}, and its {cables} carry {}B/s{without}",
        metric(needed),
        metric(carries)
    );
    Bound { load: carries / needed.max(1e-9), reason }
}
