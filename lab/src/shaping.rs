//! Traffic shaping on real links: event building in network namespaces, beside simulations of the same file.
//!
//! Each node has a namespace with a link of 100 Mbit/s or 1 Gbit/s to a bridge, in both directions a token bucket filter with a
//! shallow queue towards the nodes. Run control is on the bridge. Needs root, `ip` and `tc`.

use crate::{evb, nodes::Launcher, spread};
use serde_json::Value;
use std::{path::PathBuf, process::Command, time::Duration};
use xtask::{namespaces::Namespaces, workspace::Workspace};

const BRIDGE: &str = "evb-switch";
const NETWORK: &str = "10.77.0";
/// The name of a namespace is this prefix and the role of its node.
const PREFIX: &str = "evb-";
const FILE: &str = "experiments/shaped-links.toml";
/// Longest time of a run beyond its duration.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes of the queue of a node.
const NODE_QUEUE: &str = "2000000";
/// Bytes of the headers of IP and TCP in a packet.
const TCP_HEADERS: u32 = 52;
/// Bytes of a frame on the wire that its MTU does not count: preamble, header, checksum and gap.
const ETHERNET_HEADERS: u32 = 38;
/// Bytes that the nodes of frames grant their peers together, with packets of 1500 bytes.
const GRANTED_BYTES: u32 = 1_100_000;
/// Bytes of a header of evb's own frames.
const FRAME_HEADER: u32 = 36;

/// The links of a table.
struct Links {
    megabits: u32,
    /// Bytes that a link may send at once, for `tc`.
    burst: &'static str,
    /// Bytes of the queue of the switch to a node.
    queue: u32,
    /// The bucket of barrel shifters.
    bucket: &'static str,
    /// The lead of `credit` and of `barrier`.
    leads: [&'static str; 2],
}

const LINKS: [Links; 2] = [
    Links { megabits: 100, burst: "5kb", queue: 30_000, bucket: "64 KiB", leads: ["16 KiB", "8 KiB"] },
    Links { megabits: 1000, burst: "64kb", queue: 300_000, bucket: "128 KiB", leads: ["64 KiB", "32 KiB"] },
];

/// Sizes of fragments, as values of `readout.source`.
const SIZES: [(&str, &str); 2] = [
    ("fixed", "{ type = \"fixed\", size = \"2 kB\" }"),
    ("log-normal", "{ type = \"log-normal\", mean = \"2 kB\", rms = \"2 kB\" }"),
];

/// Compares real and simulated event building over slow links.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each run
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Runs of each row; the table has their median, minimum and maximum
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Readout units
    #[arg(long, default_value_t = 4)]
    readouts: u16,
    /// Builder units; 1 is an incast
    #[arg(long, default_value_t = 4)]
    builders: u16,
    /// Only the ways of sending whose names begin with this
    #[arg(long, default_value = "")]
    only: String,
    /// Links of 1 Gbit/s in place of 100 Mbit/s
    #[arg(long)]
    gigabit: bool,
    /// The protocol of evb for frames of Ethernet in place of TCP
    #[arg(long)]
    frames: bool,
    /// Bytes of a packet without its Ethernet header
    #[arg(long, default_value_t = 1500)]
    mtu: u32,
    /// A file of `evb twin --fit`: simulations count the cores of this machine, too
    #[arg(long)]
    fit: Option<PathBuf>,
}

impl Options {
    fn links(&self) -> &'static Links {
        &LINKS[usize::from(self.gigabit)]
    }

    /// The transport of runs.
    fn transport(&self) -> &'static str {
        if self.frames {
            "{ type = \"ethernet\", interface = \"e0\" }"
        } else {
            "{ type = \"tcp\", congestion_control = \"cubic\" }"
        }
    }

    /// The same for simulations. evb's protocol for frames grows and shrinks its windows like TCP with Reno, with shorter
    /// timeouts. A socket holds 213 kB of frames with what the system needs for each, in all.
    fn connections(&self) -> String {
        if !self.frames {
            return "{ type = \"tcp\", control = \"linux-cubic\", interface_queue = \"16 KiB\" }".into();
        }
        let window = GRANTED_BYTES / u32::from(self.readouts + self.builders);
        let keys =
            "control = \"reno\", initial_window = 64, least_timeout = \"5 ms\", ack_every = 4, ack_delay = \"1 ms\"";
        format!("{{ type = \"tcp\", {keys}, interface_queue = \"32 KiB\", window = \"{window} B\" }}")
    }

    /// Bytes of payload in a packet.
    fn payload(&self) -> u32 {
        self.mtu - if self.frames { FRAME_HEADER } else { TCP_HEADERS }
    }
}

pub(crate) fn compare(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let network = create_network(options)?;
    let wire = 125e3 * f64::from(options.links().megabits) * f64::from(options.readouts.min(options.builders));
    println!("{:<24} {:<10} {:>22} {:>10} {:>6} {:>8}", "way", "sizes", "run", "simulated", "ratio", "of wire");
    for (way, sizes, changes) in rows(options) {
        let runs = (0..options.turns.max(1)).map(|_| throughput(&build(&network, &workspace, options, &changes)?));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let simulated = throughput(&simulate(&workspace, options, &changes)?)?;
        let median = spread::median(&runs).unwrap_or(f64::NAN);
        let (run, ratio, part) = (spread::spread(&runs, 1e6), simulated / median, 100.0 * median / wire);
        println!("{way:<24} {sizes:<10} {run:>22} {:>10.1} {ratio:>6.2} {part:>7.1}%", simulated / 1e6);
    }
    println!("\nMB/s of payload at all builders; the wire carries {:.0} MB/s.", wire / 1e6);
    Ok(())
}

/// The names of each row, and its changes to the file.
fn rows(options: &Options) -> impl Iterator<Item = (&'static str, &'static str, Vec<String>)> {
    let units = [
        format!("readout.units={}", options.readouts),
        format!("builder.units={}", options.builders),
        format!("transport={}", options.transport()),
        // A run has a host for each unit, too.
        format!("network.topology={{ type = \"crossbar\", ports = {} }}", options.readouts + options.builders + 1),
    ];
    let ways = ways(options).into_iter().filter(|(way, _)| way.starts_with(&options.only));
    ways.flat_map(move |(way, changes)| {
        let units = units.clone();
        SIZES.map(|(sizes, source)| {
            let source = format!("readout.source={source}");
            (way, sizes, units.iter().chain(&changes).cloned().chain([source]).collect())
        })
    })
}

/// Ways of sending, as changes to the file.
fn ways(options: &Options) -> [(&'static str, Vec<String>); 8] {
    let Links { megabits, bucket, leads: [credit, barrier], .. } = options.links();
    let without = "shaping={ type = \"none\" }".to_owned();
    let pull = |keys: &str| vec![without.clone(), format!("protocol={{ type = \"pull\"{keys} }}")];
    let shifter = |step: &str| vec![format!("shaping={{ type = \"barrel-shifter\", bucket = \"{bucket}\", {step} }}")];
    let packets = format!("shaping={{ type = \"rate-division\", packet = \"{} B\" }}", options.payload());
    let rate = 0.117 * f64::from(*megabits);
    [
        ("push", vec![without.clone()]),
        ("pull", pull("")),
        ("pull, window of 2", pull(", window = 2")),
        ("grouping", vec!["shaping={ type = \"grouping\", packet = \"32 KiB\" }".to_owned()]),
        ("rate-division", vec![packets, "network.transport={ type = \"none\" }".to_owned()]),
        ("barrel-shifter, credit", shifter(&format!("step = \"credit\", lead = \"{credit}\""))),
        ("barrel-shifter, barrier", shifter(&format!("step = \"barrier\", lead = \"{barrier}\""))),
        ("barrel-shifter, clock", shifter(&format!("step = \"clock\", rate = \"{rate:.1} MB/s\", guard = \"100 us\""))),
    ]
}

fn throughput(record: &Value) -> Result<f64, String> {
    match record["good"].as_bool() {
        Some(true) => record["throughput_bytes_per_s"].as_f64().ok_or_else(|| "a record without throughput".into()),
        _ => Err(format!("a run is not good: {}", record["findings"])),
    }
}

fn command(workspace: &Workspace, verb: &str, options: &Options, changes: &[String]) -> Command {
    let mut command = Command::new(workspace.evb());
    command.current_dir(&workspace.root).args([verb, FILE, "--json", "--quiet"]);
    let duration = format!("trigger.duration=\"{} s\"", options.seconds);
    command.args(changes.iter().chain([&duration]).flat_map(|change| ["--set", change]));
    command
}

/// Simulates a row. Returns the record.
fn simulate(workspace: &Workspace, options: &Options, changes: &[String]) -> Result<Value, String> {
    let links = options.links();
    // That of the file, in times of packets.
    let jitter = 2000 / links.megabits;
    let (payload, headers) = (options.payload(), options.mtu + ETHERNET_HEADERS - options.payload());
    let network = [
        "network.preset=\"fast-ethernet\"".to_owned(),
        format!("network.link.rate=\"{} Mbit/s\"", links.megabits),
        format!("network.flow={{ queue = \"{} B\", full = \"drop\" }}", links.queue),
        format!(
            "network.nic={{ packet = \"{payload} B\", header = \"{headers} B\", jitter = {{ mean = \"{jitter} us\" }} }}"
        ),
        format!("network.transport={}", options.connections()),
    ];
    // The changes of a row may replace the transport.
    let all: Vec<_> = network.into_iter().chain(changes.iter().cloned()).collect();
    let mut command = command(workspace, "simulate", options, &all);
    if let Some(costs) = &options.fit {
        command.args(["--network".as_ref(), costs.as_os_str()]).args(["--set", "network.cpu.messages=\"network\""]);
    }
    evb::record(&mut command, limit(options))
}

/// A namespace for each node, whose links have the rate.
fn create_network(options: &Options) -> Result<Namespaces, String> {
    let readouts = (0..options.readouts).map(|unit| format!("ru{unit}"));
    let builders = (0..options.builders).map(|unit| format!("bu{unit}"));
    let names = std::iter::once("evm".to_owned()).chain(readouts).chain(builders).map(|role| format!("{PREFIX}{role}"));
    let network = Namespaces::create(BRIDGE, NETWORK, names)?;
    let Links { megabits, burst, queue, .. } = options.links();
    network.set_mtu(options.mtu)?;
    network.shape(&format!("{megabits}mbit"), burst, [&queue.to_string(), NODE_QUEUE])?;
    Ok(network)
}

/// Longest time of a run with its nodes.
fn limit(options: &Options) -> Duration {
    LIMIT + 2 * Duration::from_secs(options.seconds)
}

/// Builds events in the namespaces. Returns the record.
fn build(network: &Namespaces, workspace: &Workspace, options: &Options, changes: &[String]) -> Result<Value, String> {
    let launcher = Launcher::new(workspace.evb(), NETWORK, limit(options))?;
    let nodes: Vec<_> = network.nodes().iter().map(|node| launcher.start(node, PREFIX)).collect();
    let mut run = command(workspace, "run", options, changes);
    let record = evb::record(launcher.controlled_by(&mut run), limit(options));
    drop(nodes);
    record
}
