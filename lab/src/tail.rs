//! The tail: the times of the slowest events at half of the possible rate, for each transport, beside the gaps of the machine
//! itself, which a loop on each core measures that only reads the clock.

use crate::{evb, spread};
use serde_json::Value;
use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};
use xtask::workspace::Workspace;

const FILE: &str = "experiments/two-by-two.toml";
/// Transports, and the options for them.
pub(crate) const TRANSPORTS: &[(&str, &[&str])] = &[
    ("threads", &[]),
    ("shm", &["--processes"]),
    ("tcp", &["--processes", "--set", "transport.type=tcp"]),
    ("ofi:tcp", &["--processes", "--set", "transport.type=ofi", "--set", "transport.provider=tcp"]),
    ("ofi:shm", &["--processes", "--set", "transport.type=ofi", "--set", "transport.provider=shm"]),
];
/// The part of the possible rate.
const LOAD: f64 = 0.5;
/// A time that no event should take unless the machine stalled for as long.
const LONG: Duration = Duration::from_millis(1);
/// Longest time of a run beyond its duration.
const LIMIT: Duration = Duration::from_secs(60);

/// Measures the slowest events at half of the possible rate.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each run, and of each empty loop
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Number of turns; the table has their medians
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Send events in blocks, as by default; the possible rate is higher then
    #[arg(long)]
    blocks: bool,
    /// Transports; all by default
    #[arg(long, value_delimiter = ',')]
    transport: Vec<String>,
}

impl Options {
    /// The value of `trigger.block`.
    const fn block(&self) -> &'static str {
        if self.blocks { "\"auto\"" } else { "1" }
    }
}

/// The times of a run in microseconds, and the gaps of the machine before and after it.
struct Turn {
    rate_hz: f64,
    /// Median, 99th and 99.9th percentile, longest.
    times: [f64; 4],
    /// Longest gap of an empty loop in microseconds, and the number of long ones per second and core.
    gap: f64,
    long_gaps: f64,
}

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let asked = |name: &str| options.transport.is_empty() || options.transport.iter().any(|asked| asked == name);
    let transports: Vec<_> = TRANSPORTS.iter().filter(|(name, _)| asked(name)).collect();
    let mut turns: Vec<Vec<Turn>> = transports.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.turns.max(1) {
        for ((name, mode), turns) in transports.iter().zip(&mut turns) {
            turns.push(turn(&workspace, options, mode).map_err(|error| format!("{name}: {error}"))?);
        }
    }
    println!(
        "{:<10} {:>10} {:>9} {:>9} {:>9} {:>9}   {:>11} {:>12}",
        "transport", "events/s", "p50 us", "p99 us", "p99.9 us", "max us", "max gap us", "gaps > 1 ms"
    );
    for ((name, _), turns) in transports.iter().zip(&turns) {
        println!("{name:<10} {}", row(turns));
    }
    println!("\n2 x 2, 2 KiB, at half of the rate of the turn. Medians of {} turns;", options.turns.max(1));
    println!(
        "gaps of an empty loop on each core just before and after each run: the longest, and long ones per second."
    );
    Ok(())
}

fn row(turns: &[Turn]) -> String {
    let median =
        |of: &dyn Fn(&Turn) -> f64| spread::median(&turns.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN);
    let [p50, p99, p999, max] = [0, 1, 2, 3].map(|index| median(&|turn: &Turn| turn.times[index]));
    let (rate, gap, long) = (median(&|turn| turn.rate_hz), median(&|turn| turn.gap), median(&|turn| turn.long_gaps));
    format!("{rate:>10.0} {p50:>9.0} {p99:>9.0} {p999:>9.0} {max:>9.0}   {gap:>11.0} {long:>12.1}")
}

fn turn(workspace: &Workspace, options: &Options, mode: &[&str]) -> Result<Turn, String> {
    let block = options.block();
    let full = run(workspace, options.seconds, mode, &format!("type = \"free-running\", block = {block}"))?;
    let rate_hz = LOAD * rate_of(&full)?;
    let before = gaps(options);
    let trigger = format!("type = \"rate\", rate = \"{rate_hz:.0} Hz\", accept_loss = 100, block = {block}");
    let record = run(workspace, options.seconds, mode, &trigger)?;
    let after = gaps(options);
    let time = |name: &str| record["latency_us"][name].as_f64().unwrap_or(f64::NAN);
    let times = ["p50", "p99", "p999", "max"].map(time);
    Ok(Turn { rate_hz, times, gap: before.0.max(after.0), long_gaps: f64::midpoint(before.1, after.1) })
}

/// The possible number of events per second.
pub(crate) fn full_rate(workspace: &Workspace, seconds: u64, mode: &[&str]) -> Result<f64, String> {
    rate_of(&run(workspace, seconds, mode, "type = \"free-running\", block = 1")?)
}

fn rate_of(record: &Value) -> Result<f64, String> {
    record["event_rate_hz"].as_f64().ok_or_else(|| "a record without a rate".into())
}

fn run(workspace: &Workspace, seconds: u64, mode: &[&str], trigger: &str) -> Result<Value, String> {
    let mut command = Command::new(workspace.evb());
    command.current_dir(&workspace.root).args(["run", FILE, "--json", "--quiet"]).args(mode);
    command.args(["--set", &format!("trigger={{ {trigger}, duration = \"{seconds} s\" }}")]);
    let limit = LIMIT + Duration::from_secs(seconds);
    evb::record(&mut command, limit)
}

/// The longest gap of an empty loop on each core in microseconds, and the number of long ones per second and core.
fn gaps(options: &Options) -> (f64, f64) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let time = Duration::from_secs(options.seconds);
    let loops: Vec<_> = (0..cores).map(|_| thread::spawn(move || spin(time))).collect();
    let results = loops.into_iter().map(|one| one.join().unwrap_or_default());
    let (longest, long) = results.fold((Duration::ZERO, 0), |all, one| (all.0.max(one.0), all.1 + one.1));
    (longest.as_secs_f64() * 1e6, f64::from(long) / time.as_secs_f64() / cores as f64)
}

/// Reads the clock for this time: the longest time between two readings, and the number of long ones.
fn spin(time: Duration) -> (Duration, u32) {
    let (start, mut last) = (Instant::now(), Instant::now());
    let (mut longest, mut long) = (Duration::ZERO, 0);
    while start.elapsed() < time {
        let now = Instant::now();
        let gap = now - last;
        longest = longest.max(gap);
        long += u32::from(gap > LONG);
        last = now;
    }
    (longest, long)
}
