//! The simulator on two cores: one simulation on one thread and on two, and two simulations at a time on a thread each. The
//! last shows the value of a second core on this machine, where both share caches, memory and perhaps the host's core. Two
//! simulations on two threads each show the gain on a busy machine.

use crate::{evb, spread::spread};
use serde_json::Value;
use std::{
    process::Command,
    time::{Duration, Instant},
};
use xtask::{processes::Limited, workspace::Workspace};

const FILE: &str = "experiments/clos-512.toml";
/// Networks: their names, and the changes of the file.
const NETWORKS: &[(&str, &[&str])] = &[
    (
        "saturated-1024",
        &[
            "readout.units=1024",
            "builder.units=1024",
            "network.placement={readout=0,builder=0}",
            "network.control={type=\"shared\"}",
            "shaping={type=\"none\"}",
            "workload={type=\"random\"}",
            "trigger={duration=\"40 ms\"}",
            "run.warmup=\"4 ms\"",
        ],
    ),
    ("clos-512", &[]),
];
/// Longest time of a simulation.
const LIMIT: Duration = Duration::from_secs(1200);

/// Measures one simulation on two threads beside two simulations at a time.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of turns of the four measurements; the table has their medians, minima and maxima
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Networks; all by default
    #[arg(long, value_delimiter = ',', value_parser = NETWORKS.iter().map(|network| network.0).collect::<Vec<_>>())]
    network: Vec<String>,
}

/// The seconds of one simulation on one thread, of one on two, and of two at a time on one thread each and on two each.
struct Turn {
    one: f64,
    parts: f64,
    pair: f64,
    crowd: f64,
}

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let asked = |name: &str| options.network.is_empty() || options.network.iter().any(|asked| asked == name);
    println!(
        "{:<16} {:>26} {:>26} {:>24} {:>24} {:>24}",
        "network", "1 thread, s", "2 threads, s", "gain", "two on 1 each", "two on 2 each"
    );
    for (name, differences) in NETWORKS.iter().filter(|(name, _)| asked(name)) {
        let turns: Result<Vec<_>, _> = (1..=options.turns.max(1))
            .map(|number| {
                eprintln!("lab: {name}, {number}/{}", options.turns.max(1));
                turn(&workspace, differences).map_err(|error| format!("{name}: {error}"))
            })
            .collect();
        let turns = turns?;
        let column = |of: &dyn Fn(&Turn) -> f64| spread(&turns.iter().map(of).collect::<Vec<_>>(), 1.0);
        let [one, parts] = [column(&|turn| turn.one), column(&|turn| turn.parts)];
        let gain = column(&|turn| turn.one / turn.parts);
        let [pair, crowd] = [column(&|turn| 2.0 * turn.one / turn.pair), column(&|turn| 2.0 * turn.one / turn.crowd)];
        println!("{name:<16} {one:>26} {parts:>26} {gain:>24} {pair:>24} {crowd:>24}");
    }
    println!("\nMedians of the turns, with minimum and maximum. The records of one and of two threads are equal.");
    println!(
        "The last columns: the gain of two simulations at a time, on one thread each and on two each, over one alone."
    );
    Ok(())
}

/// The seconds of a simulation of a network on this number of threads.
pub(crate) fn seconds(workspace: &Workspace, network: &str, threads: &str) -> Result<f64, String> {
    let (_, differences) = NETWORKS.iter().find(|(name, _)| *name == network).ok_or("unknown network")?;
    time(workspace, differences, &[threads]).map(|(seconds, _)| seconds)
}

fn turn(workspace: &Workspace, differences: &[&str]) -> Result<Turn, String> {
    let (one, record) = time(workspace, differences, &["1"])?;
    let (pair, _) = time(workspace, differences, &["1", "1"])?;
    let (parts, same) = time(workspace, differences, &["2"])?;
    if record != same {
        return Err("the records of one and of two threads differ".into());
    }
    let (crowd, _) = time(workspace, differences, &["2", "2"])?;
    Ok(Turn { one, parts, pair, crowd })
}

/// The seconds of simulations with these numbers of threads, all at a time, and the record of the last one without its time.
fn time(workspace: &Workspace, differences: &[&str], threads: &[&str]) -> Result<(f64, Value), String> {
    let start = Instant::now();
    let running: Result<Vec<_>, _> = threads
        .iter()
        .map(|threads| {
            let mut command = Command::new(workspace.evb());
            command.current_dir(&workspace.root).args(["simulate", FILE, "--json", "--quiet", "--threads", threads]);
            command.args(differences.iter().flat_map(|set| ["--set", set]));
            Limited::start(&mut command, LIMIT).map_err(|error| format!("evb: {error}"))
        })
        .collect();
    let mut output = String::new();
    for mut process in running? {
        let (status, text) = process.wait()?;
        if !status.success() {
            return Err(format!("evb ends with {status}"));
        }
        output = text;
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut record = evb::parse(&output)?;
    let fields = record.as_object_mut().ok_or("the record is not an object")?;
    fields.remove("wall_seconds").ok_or("the record has no `wall_seconds`")?;
    Ok((seconds, record))
}
