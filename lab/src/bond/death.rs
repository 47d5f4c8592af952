//! A run of an event builder over two links, of which one dies.

use super::{
    Options,
    links::{Links, NETWORKS},
};
use crate::{
    evb,
    nodes::{Launcher, Node},
};
use serde_json::Value;
use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};
use xtask::{processes::Limited, workspace::Workspace};

const PREFIX: &str = "evb-";
const ROLES: [&str; 5] = ["evb-evm", "evb-ru0", "evb-ru1", "evb-bu0", "evb-bu1"];
/// Silence after which a link counts as dead.
const PEER_TIMEOUT: &str = "3 s";
/// Time after which a run has its full rate, and after which a dead link has no influence.
const SETTLE: Duration = Duration::from_secs(2);
/// Longest time of a run beyond its duration.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs an event builder, cuts the second link of all nodes halfway, and reports rates and a verdict.
pub(super) fn run(workspace: &Workspace, options: &Options, bond: &str) -> Result<(), String> {
    let links = Links::create(&ROLES, options.megabits)?;
    let limit = LIMIT + Duration::from_secs(2 * options.run_seconds);
    let launcher = Launcher::new(workspace.evb(), NETWORKS[0], limit)?;
    let nodes: Vec<_> = links.nodes().iter().map(|node| launcher.start(node, PREFIX)).collect();
    let mut run = command(workspace, options, bond);
    let started = Limited::start(launcher.controlled_by(&mut run), limit);
    let mut process = started.map_err(|error| format!("evb: {error}"))?;
    let half = Duration::from_secs(options.run_seconds);
    await_traffic(&links)?;
    thread::sleep(SETTLE);
    let before = rates(&links, half);
    links.cut_second()?;
    let gap = longest_gap(&links, SETTLE);
    let after = rates(&links, half.saturating_sub(2 * SETTLE));
    let (_, output) = process.wait()?;
    nodes.into_iter().try_for_each(Node::end)?;
    report(bond, before, after, gap, &evb::parse(&output)?)
}

fn command(workspace: &Workspace, options: &Options, bond: &str) -> Command {
    let mut command = Command::new(workspace.evb());
    command.current_dir(&workspace.root).args(["run", "experiments/pull-2x2.toml", "--json", "--quiet"]);
    let seconds = 2 * options.run_seconds + SETTLE.as_secs();
    let changes = [
        format!("trigger={{ type = \"free-running\", duration = \"{seconds} s\" }}"),
        "readout.source={ type = \"fixed\", size = \"16 kB\" }".to_owned(),
        format!("run.peer_timeout=\"{PEER_TIMEOUT}\""),
        "transport.type=bond".to_owned(),
        format!("transport.links={bond}"),
    ];
    command.args(changes.iter().flat_map(|change| ["--set", change]));
    command
}

/// Waits until fragments flow over both links.
fn await_traffic(links: &Links) -> Result<(), String> {
    const LEAST: u64 = 1_000_000;
    let start = Instant::now();
    while links.carried("evb-bu").iter().any(|bytes| *bytes < LEAST) {
        if start.elapsed() > LIMIT {
            return Err("the run does not begin".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The bytes per second to the builders over each link, measured for this time.
fn rates(links: &Links, time: Duration) -> [f64; 2] {
    let (before, start) = (links.carried("evb-bu"), Instant::now());
    thread::sleep(time);
    let (after, seconds) = (links.carried("evb-bu"), start.elapsed().as_secs_f64());
    [0, 1].map(|link| (after[link] - before[link]) as f64 / seconds)
}

/// The longest time in which almost nothing reaches the builders.
fn longest_gap(links: &Links, time: Duration) -> Duration {
    const STEP: Duration = Duration::from_millis(20);
    const LEAST: u64 = 20_000;
    let (start, mut last) = (Instant::now(), links.carried("evb-bu")[0]);
    let (mut moved, mut longest) = (start, Duration::ZERO);
    while start.elapsed() < time {
        thread::sleep(STEP);
        let now = links.carried("evb-bu")[0];
        if now - last > LEAST {
            moved = Instant::now();
            last = now;
        }
        longest = longest.max(moved.elapsed());
    }
    longest
}

fn report(bond: &str, before: [f64; 2], after: [f64; 2], gap: Duration, record: &Value) -> Result<(), String> {
    let sum = |rates: [f64; 2]| rates.iter().sum::<f64>() / 1e6;
    let events = &record["events"];
    println!(
        "{bond}: {:.1} MB/s on both links, {:.1} MB/s on one after the death of the other",
        sum(before),
        sum(after)
    );
    println!("  {:.2} of the rate remains; longest gap {} ms", sum(after) / sum(before), gap.as_millis());
    println!("  events: {events}, good: {}", record["good"]);
    for finding in record["findings"].as_array().into_iter().flatten() {
        println!("  {}", finding["message"].as_str().unwrap_or_default());
    }
    let is_complete = events["triggered"] == events["built"] && record["good"] == true;
    let is_named = record["findings"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "dead_link"));
    match (is_complete, is_named) {
        (true, true) => Ok(()),
        (false, _) => Err("the run is not good without one of its links".into()),
        (true, false) => Err("the record does not name the dead link".into()),
    }
}
