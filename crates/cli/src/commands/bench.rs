//! `evb bench`: measure message layers.

pub(crate) mod output;

use crate::{
    failure::Failure,
    folder::{prepare, unwritable},
    members::Members,
    progress::{BenchProgress, ProgressArgs},
    signals::{Signals, stop_on_signals},
    token,
};
use clap::Args;
use evb::bench::{
    Benchmark, LONGEST_BYTES, LayerChoice, Measured, MemberOptions, NOT_MODELLED, Place, SMALLEST_BYTES, Series, Suite,
    Wait, allowed_cores, run_series,
    suite::{NOTE_COMPUTE_US, NOTE_SIZES, perturbed_sizes},
};
use evb::{BenchNetwork, ByteCount, Frequency, Span, fit, prepare_fit, simulate_suite};
use output::{RECORDS, Results};
use std::{
    fmt, fs,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

/// The cores of nodes that are not pinned.
pub(crate) const NOT_PINNED: Vec<u16> = Vec::new();

/// Number of nodes per core, unless it is given.
const NODES_PER_CORE: u16 = 4;

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Patterns to measure: those of the note (ping-pong, two-way, all-to-all, pairs, outfarming, broadcast, funnel,
    /// push-farm, pull-farm), or one-way, roundtrip, stream, random, rotation, rotation-retarded, gather, gather-unasked; all of
    /// the note by default
    #[arg(value_name = "PATTERN", value_parser = pattern)]
    patterns: Vec<Benchmark>,
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "threads,shm,tcp", value_parser = medium)]
    #[arg(help = transport_help())]
    transport: Vec<Medium>,
    /// Numbers of nodes; those of the note by default, up to four for each core and one more
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(2..=1024))]
    nodes: Vec<u16>,
    /// Sizes of the data, such as 8B,1kB; those of the note by default: 8, 64, 256 and 1024 B
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',')]
    sizes: Vec<ByteCount>,
    /// Sweep over sizes up to this one instead, as NetPIPE does: powers of two, each with 3 B less and more
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    sweep: Option<ByteCount>,
    /// Times that farms compute for each event; 0, 100, 400 and 1600 us by default
    #[arg(long, value_name = "TIME,..", value_delimiter = ',')]
    compute: Vec<Span>,
    /// Messages that a sender has under way at once; for `roundtrip` the depth of its pipeline, 8 by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    window: Option<u32>,
    /// Rate at which each sender of one-way, pairs, stream, random and rotation offers messages, such as 100kHz; their way is
    /// timed then, from when they were due. For gather the rate of events, which it needs
    #[arg(long, value_name = "RATE")]
    rate: Option<Frequency>,
    /// Fewest and most senders that a receiver of gather gathers an event from, such as 2..4; all if there are fewer
    #[arg(long, value_name = "MIN..MAX", default_value = "3..20", value_parser = range)]
    gathers: (u16, u16),
    /// How often the nodes are started anew; what is simulated is the same each time, and done once
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// Time of each measurement in each launch, 100 ms by default; of velo-rtl in the time of the simulated clock, 500 us by
    /// default and more for long messages and for farms that compute
    #[arg(long, value_name = "TIME")]
    time: Option<Span>,
    /// Time before each measurement, 20 ms by default; of velo-rtl 50 us
    #[arg(long, value_name = "TIME")]
    warmup: Option<Span>,
    /// What nodes without work do: spin, yield, or sleep; the same for all message layers
    #[arg(long, value_name = "MODE", default_value = "yield", value_parser = wait)]
    wait: Wait,
    /// What starts the nodes of MPI, with {nodes} for their number; `mpirun` with what it needs on this machine by default.
    /// For other message layers, what stands before the command of each node, with {node} for its number, such as `ip netns
    /// exec n{node}`
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// Address of this machine at which the nodes find the command; the loopback address by default
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<IpAddr>,
    /// Do not pin the nodes to cores in turn
    #[arg(long)]
    no_pin: bool,
    /// Seed of every random stream
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write records, parameters, tables as CSV, single times and plots as SVG into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Fit a simulated network to the one transport, for `evb simulate --network`: ping-pong and one-way are measured for it,
    /// with 8 B to 16 KiB by default, and what else is asked for
    #[arg(long, value_name = "FILE")]
    fit: Option<PathBuf>,
    /// Print JSON records, one on a line, instead of tables: the measurements, then the parameters
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Be a node of the launch that listens here
    #[arg(long, value_name = "HOST:PORT", hide = true)]
    join: Option<SocketAddr>,
    /// The message layer and its settings, as JSON
    #[arg(long, value_name = "JSON", hide = true, requires = "join")]
    layer: Option<String>,
    /// Which node
    #[arg(long, value_name = "N", hide = true, requires = "join")]
    node: Option<u16>,
}

/// The carrier of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Medium {
    Real(LayerChoice),
    /// A simulated network: a preset by its name, or a file.
    Simulated(String),
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(layer) => layer.fmt(f),
            Self::Simulated(network) => write!(f, "sim:{}", network),
        }
    }
}

fn transport_help() -> String {
    format!("Message layers: {}; and sim:PRESET or sim:FILE.toml for a simulated network", LayerChoice::usage(true))
}

fn medium(text: &str) -> Result<Medium, String> {
    match text.split_once(':') {
        Some(("sim", network)) if !network.is_empty() => Ok(Medium::Simulated(network.into())),
        _ => text.parse().map(Medium::Real),
    }
}

fn pattern(text: &str) -> Result<Benchmark, String> {
    let names = || Benchmark::ALL.map(Benchmark::name).join(", ");
    let found = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == text);
    found.ok_or_else(|| format!("there is no such pattern; there are {}", names()))
}

fn range(text: &str) -> Result<(u16, u16), String> {
    let (least, most) = text.split_once("..").ok_or("write the fewest and the most, such as 3..20")?;
    let number = |text: &str| text.parse::<u16>().map_err(|_| format!("{text:?} is no number of senders"));
    let (least, most) = (number(least)?, number(most)?);
    if 1 <= least && least <= most {
        Ok((least, most))
    } else {
        Err("the fewest are 1 or more, and not above the most".into())
    }
}

fn wait(text: &str) -> Result<Wait, String> {
    let found = [Wait::Spin, Wait::Yield, Wait::Sleep].into_iter().find(|wait| wait.name() == text);
    found.ok_or_else(|| "there are spin, yield and sleep".into())
}

pub(crate) fn run(args: &BenchArgs) -> Result<bool, Failure> {
    match args.join {
        Some(control) => be_node(args, control),
        None => measure(args),
    }
}

fn be_node(args: &BenchArgs, control: SocketAddr) -> Result<bool, Failure> {
    Signals::ignore().map(drop)?;
    let layer = args.layer.as_deref().map(serde_json::from_str).transpose().map_err(Failure::new)?;
    let layer: LayerChoice = layer.ok_or_else(|| Failure::new("a node knows its message layer"))?;
    let [nodes] = args.nodes[..] else { return Err(Failure::new("a node knows how many there are")) };
    let options = MemberOptions {
        layer,
        node: args.node,
        nodes,
        longest: args.sizes.iter().map(|size| size.0 as usize).max().unwrap_or(0),
        control,
        token: token::shared()?,
        cores: cores(args),
    };
    evb::bench::join(&options)?;
    Ok(true)
}

/// The cores to which the nodes are pinned: all that this process may use, or none with `--no-pin`.
fn cores(args: &BenchArgs) -> Vec<u16> {
    if args.no_pin { NOT_PINNED } else { allowed_cores() }
}

fn suite(args: &BenchArgs) -> Result<Suite, Failure> {
    let bytes = |size: &ByteCount| usize::try_from(size.0).unwrap_or(usize::MAX);
    let sizes: Vec<_> = match &args.sweep {
        Some(longest) => perturbed_sizes(bytes(longest).min(LONGEST_BYTES)),
        None if args.sizes.is_empty() => NOTE_SIZES.to_vec(),
        None => args.sizes.iter().map(bytes).collect(),
    };
    if sizes.is_empty() {
        let message = "a sweep that ends below the smallest message measures nothing";
        return Err(Failure::with_hint(message, format!("end it at {SMALLEST_BYTES} B or more, such as --sweep 1MB")));
    }
    if let Some(wrong) = sizes.iter().find(|&&size| !(SMALLEST_BYTES..=LONGEST_BYTES).contains(&size)) {
        let hint = format!(
            "use {SMALLEST_BYTES} B to {LONGEST_BYTES} B: each message begins with a word that says what it is"
        );
        return Err(Failure::with_hint(format!("a message of {wrong} B cannot be measured"), hint));
    }
    if let Some(benchmark) = args.patterns.iter().find(|benchmark| args.rate.is_none() && benchmark.needs_rate()) {
        let message = format!("the events of {} come at a rate, and none is given", benchmark.name());
        return Err(Failure::with_hint(message, "give one, such as `--rate 10kHz`"));
    }
    let compute = match &args.compute[..] {
        [] => NOTE_COMPUTE_US.map(Span::from_micros).to_vec(),
        given => given.to_vec(),
    };
    Ok(Suite {
        benchmarks: if args.patterns.is_empty() { Benchmark::NOTE.to_vec() } else { args.patterns.clone() },
        sizes,
        nodes: args.nodes.clone(),
        most_nodes: NODES_PER_CORE * allowed_cores().len().clamp(1, 256) as u16 + 1,
        compute,
        window: args.window,
        rate: args.rate.map(|rate| rate.0 as f64 * 1e-3),
        gathers: args.gathers,
        warmup: args.warmup,
        duration: args.time,
        wait: args.wait,
        seed: args.seed,
    })
}

fn measure(args: &BenchArgs) -> Result<bool, Failure> {
    let mut suite = suite(args)?;
    if args.fit.is_some() {
        let [Medium::Real(_)] = &args.transport[..] else {
            let hint = "name the one that the network is to be like, such as --transport shm";
            return Err(Failure::with_hint("a network is fitted to one real transport", hint));
        };
        prepare_fit(&mut suite, !args.patterns.is_empty(), !args.sizes.is_empty() || args.sweep.is_some());
    }
    let stop = stop_on_signals("the measurement ends")?;
    if let Some(folder) = &args.out {
        prepare(folder, RECORDS)?;
    }
    let (mut all, mut good) = (Vec::new(), true);
    for medium in &args.transport {
        if stop.load(Ordering::Relaxed) {
            good = false;
            break;
        }
        let rows = match medium {
            Medium::Real(layer) => measure_layer(args, &suite, layer, &stop),
            Medium::Simulated(network) => simulate(network, &suite, &stop),
        };
        match rows {
            Ok(rows) => all.extend(rows),
            Err(failure) if args.transport.len() > 1 => {
                good = false;
                eprintln!("evb: {medium} is left out");
                failure.print();
            }
            Err(failure) => return Err(failure),
        }
    }
    let results = Results::new(all);
    results.print(args.json)?;
    if let Some(folder) = &args.out {
        results.write(folder)?;
    }
    if let Some(file) = &args.fit {
        write_network(file, &args.transport[0].to_string(), &suite, &results.records, &stop)?;
    }
    Ok(good && !results.records.is_empty() && results.records.iter().all(|record| record.good))
}

fn simulate(network: &str, suite: &Suite, stop: &AtomicBool) -> Result<Vec<Measured>, Failure> {
    let records = simulate_suite(&BenchNetwork::named(network)?, network, suite, stop)?;
    Ok(records.into_iter().map(|record| Measured { record, raw: Vec::new() }).collect())
}

/// Writes a network that is fitted to a transport, and shows its deviations.
fn write_network(
    file: &Path,
    transport: &str,
    suite: &Suite,
    measured: &[evb::record::Benchmark],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let (text, errors) = fit(transport, suite, measured, stop)?;
    fs::write(file, text).map_err(|error| unwritable(file, &error))?;
    let file = file.display();
    eprintln!("evb: {file} holds the network");
    eprintln!("evb: {errors}");
    eprintln!("evb: {NOT_MODELLED}");
    eprintln!("evb: try it with `evb simulate FILE --network {file}`");
    Ok(())
}

fn measure_layer(
    args: &BenchArgs,
    suite: &Suite,
    layer: &LayerChoice,
    stop: &AtomicBool,
) -> Result<Vec<Measured>, Failure> {
    let measurements = suite.measurements(layer);
    let nodes = measurements.iter().map(|measurement| measurement.nodes).max().unwrap_or(0);
    let longest = measurements.iter().map(|measurement| measurement.size).max().unwrap_or(0);
    let members = Members::new(layer, nodes, longest, !args.no_pin, args.launcher.as_deref(), args.listen)?;
    let commands = |control| members.commands(control);
    let launch = || members.launch(&commands);
    let place = Place { layer: layer.clone(), cores: cores(args), stop, launch: Some(&launch) };
    let series = Series { place, measurements, launches: args.launches };
    let mut progress = BenchProgress::new(layer, stop, args.progress);
    let result = run_series(&series, &mut progress);
    drop(progress);
    result.map_err(|error| Failure::from(error).within(layer))
}
