//! Random experiments in which packets may follow each other as trains.

use proptest::{prelude::*, sample::select};

/// An experiment in the words of its file.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    topology: &'static str,
    flow: String,
    arbitration: &'static str,
    routing: &'static str,
    /// Link rate, in Gbit/s, and delays of links and switches, in nanoseconds.
    rate: u32,
    delays: (u32, u32),
    nic: String,
    work: String,
    source: String,
    units: (u16, u16),
    placement: &'static str,
    /// Duration and warm-up, in microseconds.
    time: (u32, u32),
    faults: &'static str,
    seed: u64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            topology: CLOS,
            flow: "type = \"cut-through\", buffer = \"64 KiB\", reaction = \"100 ns\", virtual_channels = 1".into(),
            arbitration: "round-robin",
            routing: "routing = { type = \"fixed\" }",
            rate: 100,
            delays: (50, 300),
            nic: "packet = \"4 KiB\"".into(),
            work: "[workload]\ntype = \"pairs\"\n[trigger]\nDURATION\n".into(),
            source: "{ type = \"fixed\", size = \"1 MiB\" }".into(),
            units: (4, 4),
            placement: "placement = { readout = 0, builder = 8 }",
            time: (1000, 100),
            faults: "",
            seed: 1,
        }
    }
}

impl Case {
    /// Packets that leave gaps, and no delays: when the measurement ends, one has left a switch before the next is to be sent on.
    pub(crate) fn from_a_slow_interface() -> Self {
        Self {
            flow: "type = \"cut-through\", buffer = \"4400 B\", reaction = \"0 ns\", virtual_channels = 1".into(),
            delays: (0, 0),
            nic: "packet = \"512 B\", header = \"0 B\", overhead = \"0 ns\", rate = \"5 GB/s\"".into(),
            source: "{ type = \"fixed\", size = \"6811 B\" }".into(),
            units: (1, 1),
            time: (103, 0),
            ..Self::default()
        }
    }
}

const CLOS: &str = "{ type = \"clos\", leaves = 4, ports_per_leaf = 4, spines = 4 }";
const CROSSBAR: &str = "{ type = \"crossbar\", ports = 16 }";
const SLOW_TREE: &str = "{ type = \"clos\", leaves = 4, ports_per_leaf = 4, spines = 2, uplink = \"10 Gbit/s\" }";
const FAT_TREE: &str = "{ type = \"fat-tree\", radix = 4 }";
const GRID: &str = "{ type = \"grid\", width = 4, height = 2, terminals = 2 }";
const TORUS: &str = "{ type = \"torus\", width = 4, height = 4, terminals = 1 }";

impl Case {
    /// The experiment file.
    pub(crate) fn text(&self) -> String {
        let Self { topology, flow, arbitration, routing, rate, delays, nic, work, source, units, .. } = self;
        let ((readout, builder), (link, switch), (duration, warmup)) = (units, delays, self.time);
        let (placement, faults, seed) = (self.placement, self.faults, self.seed);
        format!(
            "[network]\ntopology = {topology}\nlink = {{ rate = \"{rate} Gbit/s\", delay = \"{link} ns\" }}\n\
             switch = {{ delay = \"{switch} ns\", arbitration = \"{arbitration}\" }}\nflow = {{ {flow} }}\n{routing}\n\
             nic = {{ {nic} }}\n{placement}\n{faults}\n{work}\n[run]\nwarmup = \"{warmup} us\"\nseed = {seed}\n\
             [readout]\nunits = {readout}\nsource = {source}\n[builder]\nunits = {builder}\n[storage]\nkeep = \"none\"\n"
        )
        .replace("DURATION", &format!("duration = \"{duration} us\""))
        .replace("SWITCH0", first_switch(topology))
    }
}

/// The switch of the first host.
fn first_switch(topology: &str) -> &'static str {
    match topology {
        CROSSBAR => "switch0",
        FAT_TREE => "edge0_0",
        GRID | TORUS => "s0_0",
        _ => "leaf0",
    }
}

/// Any experiment.
pub(crate) fn any() -> impl Strategy<Value = Case> {
    let network = (topology_and_routing(), flow(), select(&["round-robin", "oldest", "random"][..]));
    let speeds = (select(&[10_u32, 100, 400][..]), (0..500_u32, 0..500_u32));
    let times = (100..600_u32, 0..300_u32, any_seed());
    (network, speeds, nic(), work(), source(), times, select(FAULTS)).prop_map(
        |(
            ((topology, routing), flow, arbitration),
            (rate, delays),
            nic,
            (work, units, placement),
            source,
            time,
            faults,
        )| {
            let (duration, warmup, seed) = time;
            // Slower networks need longer for as many packets.
            let duration = duration * 100 / rate;
            let time = (duration.max(50), warmup.min(duration / 2));
            Case {
                topology,
                flow,
                arbitration,
                routing,
                rate,
                delays,
                nic,
                work,
                source,
                units,
                placement,
                time,
                faults,
                seed,
            }
        },
    )
}

fn any_seed() -> impl Strategy<Value = u64> {
    0..1_000_u64
}

const FAULTS: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "[[network.fault]]\ntarget = \"h0>SWITCH0\"\nat = \"20 us\"\naction = \"slow\"\nfactor = 2.0",
];

fn topology_and_routing() -> impl Strategy<Value = (&'static str, &'static str)> {
    const FIXED: &str = "routing = { type = \"fixed\" }";
    prop_oneof![
        4 => (select(&[CLOS, CROSSBAR, SLOW_TREE, FAT_TREE][..]), Just(FIXED)),
        1 => (select(&[CLOS, FAT_TREE][..]), select(&[
            "routing = { type = \"ecmp\" }",
            "routing = { type = \"random\" }",
            "routing = { type = \"adaptive\" }",
            "routing = { type = \"dispersive\", patience = \"1 us\", after = 2 }",
            "routing = { type = \"fixed\", spread = \"source\" }",
        ][..])),
        2 => (select(&[GRID, TORUS][..]), Just("routing = { type = \"dimension-order\" }")),
    ]
}

fn flow() -> impl Strategy<Value = String> {
    let buffer = select(&["4400 B", "8 KiB", "10 KiB", "16 KiB", "40 KiB", "64 KiB", "1 MiB"][..]);
    let cut_through = (buffer, 0..500_u32, 1..3_u8).prop_map(|(buffer, reaction, channels)| {
        format!(
            "type = \"cut-through\", buffer = \"{buffer}\", reaction = \"{reaction} ns\", virtual_channels = {channels}"
        )
    });
    let queue = select(&["8 KiB", "16 KiB", "64 KiB", "256 KiB"][..]);
    let full = select(&["pause", "priority-pause", "drop"][..]);
    let store = (queue, full, 0..2000_u32, 1..3_u8).prop_map(|(queue, full, reaction, priorities)| {
        format!(
            "type = \"store-and-forward\", queue = \"{queue}\", full = \"{full}\", reaction = \"{reaction} ns\", \
             priorities = {priorities}"
        )
    });
    let wormhole = Just("type = \"wormhole\", slack = \"64 KiB\", reaction = \"100 ns\"".to_owned());
    prop_oneof![6 => cut_through, 4 => store, 1 => wormhole]
}

fn nic() -> impl Strategy<Value = String> {
    let rates = select(&["", "", "", ", rate = \"5 GB/s\"", ", rate = \"1 GB/s\""][..]);
    let others = select(&["", "", "", "", ", messages = 4", ", minimum = \"2 KiB\""][..]);
    (select(&[512_u32, 1024, 4000, 4096][..]), 0..200_u32, prop_oneof![3 => Just(0), 1 => 0..300_u32], rates, others)
        .prop_map(|(packet, header, overhead, rate, others)| {
            let header = if header < 100 { 0 } else { header };
            format!("packet = \"{packet} B\", header = \"{header} B\", overhead = \"{overhead} ns\"{rate}{others}")
        })
}

fn source() -> impl Strategy<Value = String> {
    prop_oneof![
        (2_000..300_000_u32).prop_map(|size| format!("{{ type = \"fixed\", size = \"{size} B\" }}")),
        select(&[8, 64, 256][..]).prop_map(|size| format!("{{ type = \"fixed\", size = \"{size} KiB\" }}")),
        (4..60_u32).prop_map(|size| format!("{{ type = \"log-normal\", mean = \"{size} kB\", rms = \"{size} kB\" }}")),
    ]
}

/// The work, the units, and their places.
fn work() -> impl Strategy<Value = (String, (u16, u16), &'static str)> {
    prop_oneof![3 => traffic(), 3 => building()]
}

fn traffic() -> impl Strategy<Value = (String, (u16, u16), &'static str)> {
    const APART: &str = "placement = { readout = 0, builder = 8 }";
    const TOGETHER: &str = "placement = { readout = 0, builder = 0 }";
    let pattern = select(&["pairs", "random", "rotation"][..]);
    let load = prop_oneof![
        2 => Just(String::new()),
        1 => (1..10_u32).prop_map(|tenths| format!("load = 0.{tenths}\n")),
    ];
    (pattern, load, 1..9_u16, select(&[APART, APART, TOGETHER][..])).prop_map(|(pattern, load, units, placement)| {
        let units = if pattern == "rotation" || placement == TOGETHER { units.max(2) } else { units };
        (format!("[workload]\ntype = \"{pattern}\"\n{load}[trigger]\nDURATION\n"), (units, units), placement)
    })
}

fn building() -> impl Strategy<Value = (String, (u16, u16), &'static str)> {
    const SEPARATE: &str = "placement = { readout = 0, builder = 8 }\n\
                            control = { type = \"separate\", delay = \"1 us\", rate = \"10 Gbit/s\" }";
    const TOGETHER: &str = "placement = { readout = 0, builder = 0 }\n\
                            control = { type = \"separate\", delay = \"1 us\", rate = \"10 Gbit/s\" }";
    const SHARED: &str = "placement = { manager = 15, readout = 0, builder = 7 }";
    // Not step = "link": it fills the network with empty buckets as long as a lost fragment is waited for.
    let protocol = select(&["push", "pull"][..]);
    let shaping = select(
        &[
            "none",
            "none",
            "barrel-shifter\"\nstep = \"credit\"\nbucket = \"64 KiB",
            "barrel-shifter\"\nstep = \"barrier\"\nbucket = \"100 kB",
        ][..],
    );
    (protocol, shaping, (1..8_u16, 1..8_u16), select(&[SEPARATE, TOGETHER, SHARED][..])).prop_map(
        |(protocol, shaping, units, placement)| {
            let work = format!(
                "[trigger]\ntype = \"free-running\"\nDURATION\n[protocol]\ntype = \"{protocol}\"\n\
                 [shaping]\ntype = \"{shaping}\"\n"
            );
            (work, units, placement)
        },
    )
}
