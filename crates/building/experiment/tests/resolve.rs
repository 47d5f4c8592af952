//! The resolved text of any good experiment means the same as the experiment.

use evb_experiment::Experiment;
use proptest::{collection::vec, option, prelude::*, sample::select};

/// Lines `key = value` of which each is there or not.
fn lines(keys: Vec<(&'static str, BoxedStrategy<String>)>) -> impl Strategy<Value = String> {
    let line = |(key, value): (&'static str, BoxedStrategy<String>)| {
        option::of(value).prop_map(move |value| value.map_or(String::new(), |value| format!("{key} = {value}\n")))
    };
    keys.into_iter().map(line).collect::<Vec<_>>().prop_map(|lines| lines.concat())
}

fn text() -> BoxedStrategy<String> {
    // Written as a basic string of TOML, which the debug form is for these characters.
    "[a-z A-Z0-9\"\\\\äπ\n\t$.-]{1,20}".prop_map(|text| format!("{text:?}")).boxed()
}

fn integer(range: std::ops::RangeInclusive<i64>) -> BoxedStrategy<String> {
    range.prop_map(|number| number.to_string()).boxed()
}

fn words(words: &'static [&'static str]) -> BoxedStrategy<String> {
    select(words).prop_map(|word| format!("{word:?}")).boxed()
}

fn wait() -> BoxedStrategy<String> {
    (1..1000_u32, select(vec!["us", "ms", "s"])).prop_map(|(n, unit)| format!("\"{n} {unit}\"")).boxed()
}

fn size() -> BoxedStrategy<String> {
    (1..900_u32, select(vec!["B", "kB", "KiB"])).prop_map(|(n, unit)| format!("\"{n} {unit}\"")).boxed()
}

fn generated() -> BoxedStrategy<String> {
    prop_oneof![
        size().prop_map(|size| format!("{{ type = \"fixed\", size = {size} }}")),
        (1..500_u32, 500..1000_u32)
            .prop_map(|(min, max)| format!("{{ type = \"uniform\", min = \"{min} B\", max = \"{max} B\" }}")),
        (size(), size()).prop_map(|(mean, rms)| format!("{{ type = \"log-normal\", mean = {mean}, rms = {rms} }}")),
        (0.001..10.0_f64, 0.0..10.0_f64, option::of(0..900_u16)).prop_map(|(mean, rms, fed)| {
            let fed = fed.map_or(String::new(), |fed| format!("fed = {fed}, "));
            format!(
                "{{ type = \"size-model\", file = \"a\", {fed}event_size_mean = {mean:?}, event_size_rms = {rms:e} }}"
            )
        }),
    ]
    .boxed()
}

fn recorded() -> BoxedStrategy<String> {
    prop_oneof![
        Just("{ type = \"cms-fed\", file = \"${EVB_DATA}/a.raw\" }".to_owned()),
        (0..9_u16).prop_map(|source| format!("{{ type = \"trace\", file = \"t.csv\", source = {source} }}")),
        (1..=64_u8).prop_map(|bits| format!("{{ type = \"tcp\", listen = \"localhost:0\", counter_bits = {bits} }}")),
    ]
    .boxed()
}

/// Trigger and readout units that go together.
fn front() -> BoxedStrategy<String> {
    let trigger =
        select(vec!["", "type = \"free-running\"\n", "type = \"rate\"\nrate = \"2.5 kHz\"\nspacing = \"poisson\"\n"]);
    let end = select(vec!["events = 1_000\n", "duration = \"1 h\"\n", "events = 0x10\nduration = \"2 s\"\n"]);
    let readout = || {
        lines(vec![
            ("busy", integer(71..=100)),
            ("free", integer(0..=70)),
            ("buffer_events", integer(50_000..=100_000)),
            ("buffer_bytes", words(&["2 MB", "64 GiB"])),
            ("max_fragment", words(&["1 MB", "1000000 B"])),
        ])
    };
    let units = |own: Vec<String>| -> String {
        own.into_iter().map(|source| format!("[[readout.unit]]\nsource = {source}\n")).collect()
    };
    let shared = (trigger, end, readout(), 4..20_u16, generated(), vec(generated(), 0..4)).prop_map(
        move |(trigger, end, keys, count, source, own)| {
            format!("[trigger]\n{trigger}{end}[readout]\nunits = {count}\nsource = {source}\n{keys}{}", units(own))
        },
    );
    let data =
        (readout(), recorded(), vec(prop_oneof![generated(), recorded()], 0..4)).prop_map(move |(keys, first, own)| {
            format!("[readout]\n{keys}[[readout.unit]]\nsource = {first}\n{}", units(own))
        });
    prop_oneof![shared, data].boxed()
}

fn back() -> BoxedStrategy<String> {
    // No group and no packet may wait longer than a builder does.
    let builder = (lines(vec![("slots", integer(1..=100))]), 1000..3600_u32)
        .prop_map(|(slots, seconds)| format!("{slots}patience = \"{seconds} s\"\n"));
    let protocol = prop_oneof![
        lines(vec![("group", integer(352..=1000)), ("group_timeout", wait()), ("type", words(&["push"]))]),
        lines(vec![("order", words(&["rotated", "same"])), ("window", integer(1..=100))])
            .prop_map(|keys| format!("type = \"pull\"\nassignment = \"least-loaded\"\n{keys}")),
    ];
    let shaping = prop_oneof![
        Just(String::new()),
        lines(vec![("packet", size()), ("timeout", wait())])
            .prop_map(|keys| format!("[shaping]\ntype = \"grouping\"\n{}", keys.replace(" B\"", " KiB\""))),
    ];
    let storage = lines(vec![
        (
            "keep",
            prop_oneof![words(&["all", "none"]), integer(1..=9).prop_map(|n| format!("{{ one_in = {n} }}"))].boxed(),
        ),
        ("directory", words(&["out", "/data", "${OUT}/x"])),
        ("file_size", words(&["4 KiB", "1.5 GB"])),
    ]);
    let run = lines(vec![("seed", integer(0..=i64::MAX)), ("peer_timeout", wait()), ("workers", integer(1..=8))]);
    let fault = lines(vec![("by", wait())]).prop_map(|by| match by.is_empty() {
        true => "[[fault]]\nnode = \"bu0\"\naction = \"kill\"\nat = \"1 s\"\n".to_owned(),
        false => format!("[[fault]]\nnode = \"ru0\"\naction = \"delay\"\none_in = 3\n{by}"),
    });
    (1..300_u16, builder, protocol, shaping, storage, run, vec(fault, 0..3))
        .prop_map(|(count, builder, protocol, shaping, storage, run, faults)| {
            format!(
                "[builder]\nunits = {count}\n{builder}[protocol]\n{protocol}{shaping}[storage]\n{storage}[run]\n{run}{}",
                faults.concat()
            )
        })
        .boxed()
}

fn sweep() -> BoxedStrategy<String> {
    let list = |values: BoxedStrategy<String>| vec(values, 1..4).prop_map(|v| format!("[{}]", v.join(", "))).boxed();
    let shapings = words(&["none", "grouping"]).prop_map(|word| format!("{{ type = {word} }}")).boxed();
    let keys = lines(vec![
        ("\"builder.units\"", list(integer(1..=300))),
        ("shaping", list(shapings)),
        ("run.seed", list(integer(0..=9))),
        ("\"data.directory\"", list(words(&[".", "x", "/y", "${Z}"]))),
        ("description", list(text())),
    ]);
    keys.prop_map(|keys| format!("[sweep]\n{keys}")).boxed()
}

/// Networks of every flow, routing and control, with room for all nodes: some listed by their keys, some by a preset.
fn network() -> BoxedStrategy<String> {
    let delay =
        || (0..1000_u32, select(vec!["ps", "ns", "us"])).prop_map(|(n, unit)| format!("\"{n} {unit}\"")).boxed();
    let rate = || words(&["1 Gbit/s", "10 GB/s", "2.5 Gbit/s"]);
    let flow = prop_oneof![
        Just(String::new()),
        delay().prop_map(|time| format!("flow = {{ reaction = {time} }}\n")),
        (delay(), 1..=8_u8).prop_map(|(time, channels)| format!(
            "flow = {{ type = \"cut-through\", buffer = \"1 MB\", reaction = {time}, virtual_channels = {channels} }}\n"
        )),
        (delay(), words(&["drop", "pause", "priority-pause"])).prop_map(|(time, full)| format!(
            "flow = {{ type = \"store-and-forward\", queue = \"1 MB\", full = {full}, reaction = {time} }}\n"
        )),
    ];
    let routing = select(vec![
        "type = \"fixed\"",
        "type = \"fixed\", spread = \"pair\"",
        "spread = \"source\"",
        "type = \"adaptive\"",
        "type = \"dispersive\", patience = \"1 us\"",
        "type = \"spanning-tree\"",
        "type = \"flowlets\", choice = \"random\"",
    ]);
    let topology = select(vec![
        "",
        "topology = {}\n",
        "topology = { ports = 700 }\n",
        "topology = { type = \"clos\", leaves = 20, ports_per_leaf = 30, spines = 4 }\n",
        "topology = { type = \"composite\", edges = 20, ports_per_edge = 30, middles = 4, links = 2 }\n",
        "topology = { type = \"tree\", leaves = 20, ports_per_leaf = 30, uplink = \"1 Tbit/s\" }\n",
    ]);
    let parts = lines(vec![
        ("link.rate", rate()),
        ("link.delay", delay()),
        ("switch", delay().prop_map(|time| format!("{{ delay = {time}, arbitration = \"oldest\" }}")).boxed()),
        ("nic.rate", rate()),
        ("nic.messages", integer(1..=9)),
        ("nic.dma", (rate(), rate()).prop_map(|(a, b)| format!("{{ read = {a}, write = {b} }}")).boxed()),
        ("host.send", delay()),
        ("control", Just("{ type = \"separate\", delay = \"1 us\", rate = \"1 Gbit/s\" }".to_owned()).boxed()),
        ("placement.builder", integer(0..=99)),
        ("fault", Just("[{ target = \"h0\", at = \"1 s\", action = \"fail\" }]".replace("h0", "h0>SWITCH")).boxed()),
    ]);
    (topology, flow, routing, parts)
        .prop_map(|(topology, flow, routing, parts)| {
            let switch = match topology {
                "" | "topology = {}\n" | "topology = { ports = 700 }\n" => "switch0",
                _ => "leaf0",
            };
            format!("[network]\n{topology}{flow}routing = {{ {routing} }}\n{}", parts.replace("SWITCH", switch))
        })
        .boxed()
}

fn experiment() -> impl Strategy<Value = String> {
    let top =
        lines(vec![("description", text()), ("name", words(&["a", "ä b"])), ("data.directory", words(&["d", "."]))]);
    (top, front(), back(), option::of(network()), option::of(sweep())).prop_map(|(top, front, back, network, sweep)| {
        format!("{top}{front}{back}{}{}", network.unwrap_or_default(), sweep.unwrap_or_default())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn resolved_experiments_mean_the_same(text in experiment()) {
        let first = Experiment::parse(&text, "some/folder/first.toml", &[]);
        let first = first.map_err(|error| TestCaseError::fail(format!("{error:?}\n{text}")))?;
        let resolved = first.resolved();
        let again = Experiment::parse(&resolved, "again.toml", &[]);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error:?}\n{resolved}")))?;
        prop_assert_eq!(again.plans(), first.plans(), "{}", resolved);
        prop_assert_eq!(again.resolved(), resolved);
    }
}
