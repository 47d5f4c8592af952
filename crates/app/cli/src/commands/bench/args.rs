//! What `evb bench` is asked for.

use crate::{
    failure::Failure,
    hosts::{self, HostArgs, Hosts},
    progress::ProgressArgs,
};
use clap::Args;
use evb::bench::{
    Benchmark, LONGEST_BYTES, LayerChoice, SMALLEST_BYTES, Suite, Wait, allowed_cores,
    suite::{NOTE_COMPUTE_US, NOTE_SIZES, fewest_nodes, perturbed_sizes},
};
use evb::{ByteCount, Frequency, Span};
use std::{fmt, net::SocketAddr, path::PathBuf};

/// The message layers, unless they are given, and that of a test of a fabric.
pub(super) const TRANSPORTS: [&str; 3] = ["threads", "shm", "tcp"];
pub(super) const ALL_PAIRS_TRANSPORT: &str = "tcp";

/// The receivers of assigned senders among all patterns, unless they are given: the first one.
const TO_ONE: [u16; 1] = [0];

/// Number of nodes per core, unless it is given.
const NODES_PER_CORE: u16 = 4;

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Patterns to measure: those of the note (ping-pong, two-way, all-to-all, pairs, outfarming, broadcast, funnel,
    /// push-farm, pull-farm), or one-way, roundtrip, stream, assigned, random, rotation, rotation-retarded, gather,
    /// gather-unasked; those of the note by default. `all` are all of these, and one table beside them. `all-pairs` tests a
    /// fabric: every pair of nodes is measured, and slow links are named
    #[arg(value_name = "PATTERN", value_parser = pattern)]
    pub(super) patterns: Vec<Asked>,
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = medium)]
    #[arg(help = transport_help())]
    pub(super) transport: Vec<Medium>,
    /// Numbers of nodes; those of the note by default, up to four for each core and one more
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub(super) nodes: Vec<u16>,
    /// Sizes of the data, such as 8B,1kB; those of the note by default: 8, 64, 256 and 1024 B
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',')]
    pub(super) sizes: Vec<ByteCount>,
    /// Sweep over sizes up to this one instead, as NetPIPE does: powers of two, each with 3 B less and more
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub(super) sweep: Option<ByteCount>,
    /// Times that farms compute for each event; 0, 100, 400 and 1600 us by default
    #[arg(long, value_name = "TIME,..", value_delimiter = ',')]
    pub(super) compute: Vec<Span>,
    /// Messages that a sender has under way at once; for `roundtrip` the depth of its pipeline, 8 by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(super) window: Option<u32>,
    /// Rate at which each sender of one-way, pairs, stream, random and rotation offers messages, such as 100kHz; their way is
    /// timed then, from when they were due. For gather the rate of events, 1 kHz by default
    #[arg(long, value_name = "RATE")]
    pub(super) rate: Option<Frequency>,
    /// Fewest and most senders that a receiver of gather gathers an event from, such as 2..4; all if there are fewer
    #[arg(long, value_name = "MIN..MAX", default_value = "3..20", value_parser = range)]
    pub(super) gathers: (u16, u16),
    /// Receivers of assigned senders, from 0: of the first, the second and so on, then from the beginning again, such as 0
    /// for all to one, or 0,0,1,1; 0 with `all`
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(..512))]
    pub(super) to: Vec<u16>,
    /// How often the nodes are started anew; what is simulated is the same each time, and done once
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) launches: u32,
    /// Time of each measurement in each launch, 100 ms by default; of velo-rtl in the time of the simulated clock, 500 us by
    /// default and more for long messages and for farms that compute
    #[arg(long, value_name = "TIME")]
    pub(super) time: Option<Span>,
    /// Time before each measurement, 20 ms by default; of velo-rtl 50 us
    #[arg(long, value_name = "TIME")]
    pub(super) warmup: Option<Span>,
    /// What nodes without work do: spin, yield, or sleep; the same for all message layers
    #[arg(long, value_name = "MODE", default_value = "yield", value_parser = wait)]
    pub(super) wait: Wait,
    /// What starts the nodes of MPI, with {nodes} for their number; `mpirun` with what it needs on this machine by default
    #[arg(long, value_name = "COMMAND")]
    pub(super) launcher: Option<String>,
    /// Do not pin the nodes to cores in turn
    #[arg(long)]
    pub(super) no_pin: bool,
    /// Seed of every random stream
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Write records, parameters, tables as CSV and Parquet, single times and plots as SVG into this folder
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Fit a simulated network to the one transport, for `evb simulate --network`: ping-pong and one-way are measured for it,
    /// with 8 B to 16 KiB by default, and what else is asked for
    #[arg(long, value_name = "FILE")]
    pub(super) fit: Option<PathBuf>,
    /// Print JSON records, one on a line, instead of tables: the measurements, then the parameters
    #[arg(long)]
    pub(super) json: bool,
    /// Limits that each link of all-pairs must keep, as a file: half_round_trip = "20 us", longest_half_round_trip,
    /// bandwidth = "1 GB/s", least_bandwidth, disturbed_links = 0, interface_losses = 0
    #[arg(long, value_name = "FILE")]
    pub(super) accept: Option<PathBuf>,
    #[command(flatten)]
    hosts: HostArgs,
    /// The address of this machine for those of --hosts, if they cannot use the one that it has on the way to the first
    #[arg(long, value_name = "HOST", requires = "hosts")]
    listen: Option<String>,
    #[command(flatten)]
    pub(super) progress: ProgressArgs,
    /// Be a node of the launch that listens here
    #[arg(long, value_name = "HOST:PORT", hide = true)]
    pub(super) join: Option<SocketAddr>,
    /// The message layer and its settings, as JSON
    #[arg(long, value_name = "JSON", hide = true, requires = "join")]
    pub(super) layer: Option<String>,
    /// Which node
    #[arg(long, value_name = "N", hide = true, requires = "join")]
    pub(super) node: Option<u16>,
    /// Read the token and the layer from standard input
    #[arg(long, hide = true, requires = "join")]
    pub(super) from_stdin: bool,
}

impl BenchArgs {
    /// The machines of the nodes; `None` if all are on this one.
    pub(super) fn hosts(&self) -> Result<Option<Hosts>, Failure> {
        self.hosts.hosts(self.listen.as_deref().map(hosts::any_port).transpose()?)
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A pattern.
    Pattern(Benchmark),
    /// Every pattern.
    All,
    /// The test of a fabric.
    AllPairs,
}

impl Asked {
    const ALL: &str = "all";
    const ALL_PAIRS: &str = "all-pairs";

    fn benchmarks(&self) -> &[Benchmark] {
        match self {
            Self::Pattern(benchmark) => std::slice::from_ref(benchmark),
            Self::All => &Benchmark::ALL,
            Self::AllPairs => &[],
        }
    }
}

/// The carrier of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Medium {
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
    let layers = LayerChoice::usage(true);
    format!(
        "Message layers: {layers}; and sim:PRESET or sim:FILE.toml for a simulated network; {} by default, and {} for \
         all-pairs",
        TRANSPORTS.join(","),
        ALL_PAIRS_TRANSPORT
    )
}

fn medium(text: &str) -> Result<Medium, String> {
    match text.split_once(':') {
        Some(("sim", network)) if !network.is_empty() => Ok(Medium::Simulated(network.into())),
        _ => text.parse().map(Medium::Real),
    }
}

fn pattern(text: &str) -> Result<Asked, String> {
    match text {
        Asked::ALL => return Ok(Asked::All),
        Asked::ALL_PAIRS => return Ok(Asked::AllPairs),
        _ => {}
    }
    let names = || Benchmark::ALL.map(Benchmark::name).join(", ");
    let found = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == text);
    found.map(Asked::Pattern).ok_or_else(|| format!("unknown pattern; use {}, all or all-pairs", names()))
}

fn range(text: &str) -> Result<(u16, u16), String> {
    let (least, most) = text.split_once("..").ok_or("write the fewest and the most, such as 3..20")?;
    let number = |text: &str| text.parse::<u16>().map_err(|_| format!("{text:?} is not a number of senders"));
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

pub(super) fn suite(args: &BenchArgs) -> Result<Suite, Failure> {
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
    let patterns: Vec<_> = args.patterns.iter().flat_map(Asked::benchmarks).copied().collect();
    let all = args.patterns.contains(&Asked::All);
    let to = if all && args.to.is_empty() { &TO_ONE[..] } else { &args.to };
    check_receivers(args, &patterns, to)?;
    let compute = match &args.compute[..] {
        [] => NOTE_COMPUTE_US.map(Span::from_micros).to_vec(),
        given => given.to_vec(),
    };
    Ok(Suite {
        benchmarks: if patterns.is_empty() { Benchmark::NOTE.to_vec() } else { patterns },
        sizes,
        nodes: args.nodes.clone(),
        most_nodes: NODES_PER_CORE * allowed_cores().len().clamp(1, 256) as u16 + 1,
        compute,
        window: args.window,
        rate: args.rate.map(|rate| rate.0 as f64 * 1e-3),
        gathers: args.gathers,
        to: to.to_vec(),
        warmup: args.warmup,
        duration: args.time,
        wait: args.wait,
        seed: args.seed,
    })
}

/// Refuses assigned senders without receivers, or whose receivers are not there.
fn check_receivers(args: &BenchArgs, patterns: &[Benchmark], to: &[u16]) -> Result<(), Failure> {
    match (patterns.contains(&Benchmark::Assigned), to) {
        (true, []) => {
            let hint = "give them with --to: `--to 0` for all to one, or `--to 0,0,1,1`";
            Err(Failure::with_hint("the senders of assigned have no receivers", hint))
        }
        (false, [_, ..]) => Err(Failure::with_hint("--to is for assigned", "name it: `evb bench assigned --to 0,0,1`")),
        (false, []) => Ok(()),
        (true, to) => match args.nodes.iter().find(|&&nodes| nodes < fewest_receivers(to)) {
            Some(nodes) => {
                let message = format!("of {nodes} nodes, half receive, and --to names more");
                Err(Failure::with_hint(message, format!("give --nodes {} or more", fewest_receivers(to))))
            }
            None => Ok(()),
        },
    }
}

/// Fewest nodes of which half are all of these receivers.
fn fewest_receivers(to: &[u16]) -> u16 {
    fewest_nodes(&[to.iter().copied().max().unwrap_or(0)])
}

/// The message layers that are asked for, or these.
pub(super) fn media(args: &BenchArgs, default: &[&str]) -> Result<Vec<Medium>, Failure> {
    match &args.transport[..] {
        [] => default.iter().map(|name| medium(name).map_err(Failure::new)).collect(),
        given => Ok(given.to_vec()),
    }
}
