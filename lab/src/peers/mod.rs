//! `cargo lab peers`: evb's message layers and its event builder beside other tools, on the same machine and the same cores, in
//! turns.

mod comparison;
mod jobs;
mod ours;
mod outputs;
mod table;
mod theirs;

use comparison::{Comparison, Peer, Statistic::*, Theirs};
use jobs::Bench;
use ours::Ours;
use std::fs;
use table::{Bar::*, Row, Unit};
use theirs::{Duties, Mpi};
use xtask::workspace::Workspace;

/// Compares message layers and event building with other tools.
///
/// Tools that are not installed make their rows `skipped`. Debian's packages are openmpi-bin, libopenmpi-dev, mpich,
/// libmpich-dev, libfabric-dev, libfabric-bin, netpipe-tcp, ucx-utils and libisal-dev.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure fewer times and for a shorter time
    #[arg(long)]
    quick: bool,
    /// Measure only rows with this text in their names, such as "2 x 2, Open MPI"
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Binding of the two sides to the two cores.
const EACH: &str = "one core each";
const BOTH: &str = "two cores together";

/// The amount of measurements.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Number of turns of evb and of each peer.
    repetitions: usize,
    /// Duration of a turn of `evb bench` in milliseconds; the peers make the number of round trips that takes about as long.
    milliseconds: u64,
    /// Number of events of a turn.
    events: u64,
}

impl Effort {
    const FULL: Self = Self { repetitions: 5, milliseconds: 100, events: 1_000_000 };
    const QUICK: Self = Self { repetitions: 3, milliseconds: 30, events: 200_000 };

    /// The number of events with fragments of this size: fewer of large ones.
    fn events_of(self, bytes: u32) -> u64 {
        self.events * u64::from(FRAGMENT_BYTES) / u64::from(bytes.max(FRAGMENT_BYTES))
    }

    /// The number of events with fragments of this size in these blocks: more than of single events, which take longer.
    fn events_in(self, blocks: Blocks, bytes: u32) -> u64 {
        match blocks {
            Blocks::Single => self.events_of(bytes),
            Blocks::Usual => (self.events_of(bytes) * MORE_IN_BLOCKS).next_multiple_of(blocks.usual_events().into()),
        }
    }

    /// The number of round trips of a peer that takes as long as a turn of evb. A round trip takes about `about_ns`.
    fn round_trips(self, about_ns: u64) -> u64 {
        self.milliseconds * 1_000_000 / about_ns
    }
}

/// Compares evb with the installed peers, and prints the table.
pub(crate) fn compare(options: &Options) -> Result<(), String> {
    eprintln!("lab: building evb");
    let workspace = Workspace::with_evb()?;
    let scratch = workspace.target.join("lab-peers");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let (evb, root) = (workspace.evb(), workspace.root.clone());
    let bench = Bench { cores: ours::cores(&evb, &scratch)?, evb, root, scratch, effort };
    let mut rows: Vec<Row> = Vec::new();
    let comparisons: Vec<_> = comparisons(&bench).into_iter().filter(|one| one.what.contains(&options.only)).collect();
    if comparisons.is_empty() {
        return Err(format!("no row has {:?} in its name\nhint: the names are in lab/peers.md", options.only));
    }
    for comparison in comparisons {
        rows.extend(comparison.run(effort.repetitions, || bench.core_to_core()));
    }
    println!("{}", table::draw(&rows, bench.cores, effort.repetitions));
    match rows.iter().filter(|row| row.has_failed()).count() {
        0 => Ok(()),
        failed => Err(format!("{failed} rows failed: a tool is installed, but did not work")),
    }
}

fn comparisons(bench: &Bench) -> Vec<Comparison> {
    let mut all = vec![shared_memory(bench)];
    let mpis = [Mpi::OPEN, Mpi::MPICH];
    all.extend(mpis.iter().zip([1.1, 1.15]).map(|(mpi, bar)| mpi_latency(bench, mpi, bar)));
    all.extend(
        [("tcp", "tcp;ofi_rxm", 10_000, 1.15), ("shm", "shm", 2_000, 1.1)].map(|provider| libfabric(bench, provider)),
    );
    all.extend([tcp(bench), message_rate(bench)]);
    let sizes = [middle_fragments, small_fragments, large_fragments, over_tcp];
    all.extend(sizes.iter().flat_map(|compare| Blocks::BOTH.map(|blocks| compare(bench, blocks))));
    all.extend(mpis.iter().flat_map(|mpi| Blocks::BOTH.map(|blocks| over_mpi(bench, mpi, blocks))));
    all.extend(
        PROVIDERS.iter().flat_map(|provider| Blocks::BOTH.map(|blocks| over_libfabric(bench, provider, blocks))),
    );
    all
}

const LATENCY_SIZES: &[u32] = &[8, 64];
const RATE_SIZES: &[u32] = &[8, 32, 64];
/// Bytes of the fragments that are built.
const FRAGMENT_BYTES: u32 = 2048;

fn peer(name: &str, measure: Result<theirs::Measure, String>) -> Peer {
    let (theirs, skipped) = match measure {
        Ok(measure) => (Theirs::Program(measure), None),
        Err(why) => (Theirs::Limit, Some(why)),
    };
    Peer { name: name.into(), statistic: Median, bar: None, pinned: EACH, theirs, skipped }
}

fn shared_memory(bench: &Bench) -> Comparison {
    let limit = Peer {
        name: "core to core".into(),
        statistic: Median,
        bar: Some(AtMost(1.4)),
        pinned: EACH,
        theirs: Theirs::Limit,
        skipped: None,
    };
    let ours = Ours::Layer { pattern: "ping-pong", transport: "shm".into(), launcher: None, wait: "spin" };
    Comparison {
        what: "half round trip, shm".into(),
        unit: Unit::Nanoseconds,
        sizes: LATENCY_SIZES,
        ours: ours.measure(bench, LATENCY_SIZES),
        peers: vec![limit, peer("ucx_perftest tag_lat", theirs::ucx(bench, "tag_lat", LATENCY_SIZES))],
    }
}

fn mpi_latency(bench: &Bench, mpi: &Mpi, bar: f64) -> Comparison {
    let launcher = Some(mpi.launcher("{nodes}").join(" "));
    let ours = Ours::Layer { pattern: "ping-pong", transport: "mpi".into(), launcher, wait: "spin" };
    let osu = peer("C loop as OSU's", theirs::osu_loop(bench, mpi, LATENCY_SIZES));
    Comparison {
        what: format!("half round trip, {}", mpi.name),
        unit: Unit::Nanoseconds,
        sizes: LATENCY_SIZES,
        ours: ours.measure(bench, LATENCY_SIZES),
        peers: vec![Peer { bar: Some(AtMost(bar)), ..osu }],
    }
}

/// A provider of libfabric: its name in evb and in `fi_pingpong`, the approximate nanoseconds of a round trip, and the largest
/// ratio.
fn libfabric(bench: &Bench, (provider, full, about_ns, bar): (&'static str, &'static str, u64, f64)) -> Comparison {
    let trips = bench.effort.round_trips(about_ns);
    let bar = Some(AtMost(bar));
    let transport = format!("ofi:{provider}");
    let ours = Ours::Layer { pattern: "ping-pong", transport: transport.clone(), launcher: None, wait: "spin" };
    let fi = peer("fi_pingpong", theirs::fi_pingpong(bench, full, trips, LATENCY_SIZES));
    let plain = peer("plain C loop", theirs::libfabric_loop(bench, provider, trips, LATENCY_SIZES));
    Comparison {
        what: format!("half round trip, {transport}"),
        unit: Unit::Nanoseconds,
        sizes: LATENCY_SIZES,
        ours: ours.measure(bench, LATENCY_SIZES),
        peers: vec![Peer { statistic: Mean, bar, ..fi }, Peer { bar, ..plain }],
    }
}

fn tcp(bench: &Bench) -> Comparison {
    // NetPIPE sleeps in the kernel until a message comes. With `sleep`, evb polls for a while before it sleeps.
    let ours = Ours::Layer { pattern: "ping-pong", transport: "tcp".into(), launcher: None, wait: "sleep" };
    let netpipe = peer("NPtcp, which sleeps", theirs::netpipe(bench, LATENCY_SIZES));
    let polls = peer("C loop that polls", theirs::tcp_loop(bench, LATENCY_SIZES));
    Comparison {
        what: "half round trip, tcp".into(),
        unit: Unit::Nanoseconds,
        sizes: LATENCY_SIZES,
        ours: ours.measure(bench, LATENCY_SIZES),
        peers: vec![Peer { bar: Some(AtMost(1.0)), ..netpipe }, Peer { bar: Some(AtMost(1.05)), ..polls }],
    }
}

fn message_rate(bench: &Bench) -> Comparison {
    let ours = Ours::Layer { pattern: "one-way", transport: "shm".into(), launcher: None, wait: "spin" };
    let ucx = peer("ucx_perftest tag_bw", theirs::ucx(bench, "tag_bw", RATE_SIZES));
    Comparison {
        what: "one sender, shm".into(),
        unit: Unit::PerSecond,
        sizes: RATE_SIZES,
        ours: ours.measure(bench, RATE_SIZES),
        peers: vec![Peer { bar: Some(OursAtLeast(25e6)), ..ucx }],
    }
}

/// Blocks of events that evb builds together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocks {
    /// The default size.
    Usual,
    /// Single events.
    Single,
}

impl Blocks {
    const BOTH: [Self; 2] = [Self::Usual, Self::Single];

    /// The value of `trigger.block`.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Usual => "auto",
            Self::Single => "1",
        }
    }

    /// The number of events in a block if fragments are small.
    pub(super) const fn usual_events(self) -> u32 {
        match self {
            Self::Usual => 64,
            Self::Single => 1,
        }
    }

    /// The name of a comparison with these blocks.
    fn named(self, name: &str) -> String {
        match self {
            Self::Usual => name.into(),
            Self::Single => format!("{name}, single events"),
        }
    }
}

/// The number of events in blocks for each single event.
const MORE_IN_BLOCKS: u64 = 4;

/// Transports of the event builder.
const SHM: &[&str] = &["transport.type=shm"];
const TCP: &[&str] = &["transport.type=tcp"];

fn event_building(bench: &Bench, name: &str, ours: Ours, sizes: &'static [u32], peers: Vec<Peer>) -> Comparison {
    let what = format!("fragments built 2 x 2, {name}");
    Comparison { what, unit: Unit::PerSecond, sizes, ours: ours.measure(bench, sizes), peers }
}

fn at_least(bar: f64, peer: Peer) -> Peer {
    Peer { bar: Some(AtLeast(bar)), ..peer }
}

/// The event builder in C over an MPI, with its fragments in blocks.
fn plain_c(bench: &Bench, mpi: &Mpi, duties: Duties, sizes: &'static [u32], blocks: Blocks) -> Peer {
    let duties_name = if matches!(duties, Duties::Evbs) { " with evb's duties" } else { "" };
    let in_blocks = if blocks == Blocks::Single { "" } else { " in blocks" };
    let name = format!("plain C{duties_name}{in_blocks}, {}", mpi.name);
    Peer { pinned: BOTH, ..peer(&name, theirs::event_building(bench, mpi, duties, sizes, blocks)) }
}

const MIDDLE: &[u32] = &[FRAGMENT_BYTES];
const SMALL: &[u32] = &[256];
const LARGE: &[u32] = &[65_536];

/// Event building in shared memory.
fn over_shm(bench: &Bench, blocks: Blocks, sizes: &'static [u32], peers: Vec<Peer>) -> Comparison {
    let ours = Ours::EventBuilding { transport: SHM, launcher: None, blocks };
    event_building(bench, &blocks.named("shm"), ours, sizes, peers)
}

fn middle_fragments(bench: &Bench, blocks: Blocks) -> Comparison {
    let mut peers = vec![
        at_least(1.2, plain_c(bench, &Mpi::OPEN, Duties::None, MIDDLE, Blocks::Single)),
        at_least(1.5, plain_c(bench, &Mpi::OPEN, Duties::Evbs, MIDDLE, Blocks::Single)),
        at_least(0.6, peer("by reference", theirs::reference_limit(bench, MIDDLE))),
    ];
    peers.extend(match blocks {
        Blocks::Single => vec![
            at_least(1.5, plain_c(bench, &Mpi::MPICH, Duties::Evbs, MIDDLE, Blocks::Single)),
            at_least(0.5, peer("copy in, copy out", theirs::copy_limit(bench, MIDDLE))),
        ],
        Blocks::Usual => vec![plain_c(bench, &Mpi::OPEN, Duties::Evbs, MIDDLE, Blocks::Usual)],
    });
    over_shm(bench, blocks, MIDDLE, peers)
}

fn small_fragments(bench: &Bench, blocks: Blocks) -> Comparison {
    let mut peers = vec![
        at_least(3.0, plain_c(bench, &Mpi::OPEN, Duties::Evbs, SMALL, Blocks::Single)),
        peer("by reference", theirs::reference_limit(bench, SMALL)),
    ];
    peers.extend((blocks == Blocks::Usual).then(|| plain_c(bench, &Mpi::OPEN, Duties::Evbs, SMALL, Blocks::Usual)));
    over_shm(bench, blocks, SMALL, peers)
}

fn large_fragments(bench: &Bench, blocks: Blocks) -> Comparison {
    let peers = vec![
        plain_c(bench, &Mpi::OPEN, Duties::Evbs, LARGE, Blocks::Single),
        at_least(0.7, peer("by reference", theirs::reference_limit(bench, LARGE))),
    ];
    over_shm(bench, blocks, LARGE, peers)
}

fn over_mpi(bench: &Bench, mpi: &Mpi, blocks: Blocks) -> Comparison {
    let ours = Ours::EventBuilding { transport: &["transport.type=mpi"], launcher: Some(mpi.launcher("5")), blocks };
    let with_duties = at_least(1.0, plain_c(bench, mpi, Duties::Evbs, MIDDLE, Blocks::Single));
    let other = match blocks {
        Blocks::Usual => plain_c(bench, mpi, Duties::Evbs, MIDDLE, Blocks::Usual),
        Blocks::Single => plain_c(bench, mpi, Duties::None, MIDDLE, Blocks::Single),
    };
    event_building(bench, &blocks.named(mpi.name), ours, MIDDLE, vec![with_duties, other])
}

fn over_tcp(bench: &Bench, blocks: Blocks) -> Comparison {
    let plain = peer("plain C with evb's duties, sockets", theirs::event_building_tcp(bench, MIDDLE));
    let ours = Ours::EventBuilding { transport: TCP, launcher: None, blocks };
    event_building(bench, &blocks.named("tcp"), ours, MIDDLE, vec![Peer { pinned: BOTH, ..at_least(1.0, plain) }])
}

/// A provider of libfabric, and evb's own transport over the same medium.
struct Provider {
    name: &'static str,
    transport: &'static [&'static str],
    own: (&'static str, &'static [&'static str]),
    bar: Option<f64>,
}

const PROVIDERS: [Provider; 3] = [
    Provider {
        name: "ofi:tcp",
        transport: &["transport.type=ofi", "transport.provider=tcp"],
        own: ("evb over tcp", TCP),
        bar: Some(0.95),
    },
    Provider {
        name: "ofi:net",
        transport: &["transport.type=ofi", "transport.provider=net"],
        own: ("evb over tcp", TCP),
        bar: None,
    },
    Provider {
        name: "ofi:shm",
        transport: &["transport.type=ofi", "transport.provider=shm"],
        own: ("evb over shm", SHM),
        bar: Some(0.7),
    },
];

fn over_libfabric(bench: &Bench, provider: &Provider, blocks: Blocks) -> Comparison {
    let &Provider { name, transport, own: (own, own_transport), bar } = provider;
    let ours = |transport| Ours::EventBuilding { transport, launcher: None, blocks };
    let own = peer(&blocks.named(own), Ok(ours::as_peer(ours(own_transport).measure(bench, MIDDLE))));
    let own = Peer { pinned: BOTH, bar: bar.map(AtLeast), ..own };
    event_building(bench, &blocks.named(name), ours(transport), MIDDLE, vec![own])
}
