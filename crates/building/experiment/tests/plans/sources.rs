//! Triggers and sources, live and recorded.

use crate::{SHORT, assert_resolves, parse, plan};
use evb_core::{ByteCount, EventCounter, FirstCounter, Frequency, Span};
use evb_experiment::TriggerPlan;
use evb_protocol::{ClockOffset, ClockSettings, Coincidence, Trigger};
use evb_sources::{
    ByteOrder, Encoding, Field, HitClock, HitLayout, LiveSlicing, LiveSpec, Marker, Slicing, SourceSpec, Tick,
    TimeField,
};

#[test]
fn each_source_has_a_histogram_and_a_name() {
    let names = |text: &str| plan(text, &[]).histograms.into_iter().map(|plan| plan.name).collect::<Vec<_>>();
    let monitor = "[[monitor]]\nfield = 'size'\nrange = [0, 100]\n";
    assert_eq!(names(&format!("{SHORT}{monitor}")), ["size of ru0", "size of ru1"]);
    assert_eq!(names(&format!("{SHORT}{monitor}name = 'n'\n")), ["n of ru0", "n of ru1"]);
    assert_eq!(names(&format!("{SHORT}{monitor}name = 'n'\nsources = ['ru1']\n")), ["n"]);
    let several = format!("{SHORT}sources = 4\nmasked = [1]\n{monitor}");
    assert_eq!(names(&several), ["size of source 0", "size of source 2", "size of source 3"]);
    assert_eq!(names(&format!("{several}sources = ['ru1', 'source 0', 'source 2']\n")).len(), 3, "each one once");
    // In two stages the builders of the second one see all fragments.
    let text = format!("{SHORT}sources = 4\n[first_stage]\nslices = 2\n{monitor}");
    let stages = plan(&text, &[]).stages.expect("two stages");
    assert!(stages.slices.iter().all(|slice| slice.histograms.len() == 4));
    assert!(stages.groups.iter().all(|group| group.histograms.is_empty()));
}

#[test]
fn a_rate_is_driven_from_outside() {
    let overrides = ["trigger.type=rate", "trigger.rate=50 kHz", "trigger.spacing=poisson"];
    let plan = plan(SHORT, &overrides);
    assert_eq!(plan.building.trigger, Trigger::Driven);
    let expected = TriggerPlan { rate: Some(Frequency(50_000_000)), poisson: true, duration: None, accept_loss: 0 };
    assert_eq!(plan.trigger, expected);
}

#[test]
fn recorded_and_live_sources_trigger_by_themselves() {
    for source in ["{ type = 'cms-fed', file = 'a' }", "{ type = 'trace', file = 'a' }"] {
        let text = format!("builder.units = 1\n[readout]\nunits = 1\nsource = {source}\n");
        assert_eq!(plan(&text, &[]).building.trigger, Trigger::Data, "{source}");
    }
    // The shared source is not used by any unit here, so it does not count.
    let unused = "trigger.events = 1\nbuilder.units = 1\nreadout.source = { type = 'cms-fed', file = 'a' }\n\
                  [[readout.unit]]\nsource = { type = 'fixed', size = '1 B' }\n";
    assert_eq!(plan(unused, &[]).building.trigger, Trigger::FreeRunning);
}

#[test]
fn first_units_can_have_sources_of_their_own() {
    let text = SHORT.to_owned() + "[[readout.unit]]\nsource = { type = 'fixed', size = '1 B' }\n";
    let sizes = [1, 2000].map(|size| SourceSpec::Fixed { size: ByteCount(size) });
    assert_eq!(plan(&text, &[]).sources, sizes);
    assert_resolves(&parse(&text, &[]));
}

/// Units that name one link and have different source ids share it; others do not.
#[test]
fn sources_with_source_ids_share_a_link() {
    let unit = |link: &str, id: u8| {
        let source = format!("source = {{ at = 0, bits = 8, value = {id} }}");
        format!("[[readout.unit]]\nsource = {{ {link}, framing = {{ size = \"8 B\", {source} }} }}\n")
    };
    let tcp = |address: &str| format!("type = \"tcp-client\", connect = \"{address}\"");
    let units =
        [unit(&tcp("a:1"), 2), unit(&tcp("b:1"), 3), unit(&tcp("a:1"), 1), unit("type = \"file\", file = \"a\"", 1)];
    let text = format!("[trigger]\ntype = \"data\"\n{}[builder]\nunits = 1\n", units.concat());
    let plan = plan(&text, &[]);
    let shared: Vec<_> =
        plan.sources.iter().map(|source| source.live().expect("a live source").shared.clone()).collect();
    assert_eq!(shared, [vec![1, 2], vec![], vec![1, 2], vec![]]);
}

/// The readout of VMM3a chips, as the guide to boards describes it.
const CHIPS: &str = r#"
[readout]
slice = "1 ms"
[readout.framing]
order = "big"
[readout.framing.hits]
at = 16
size = "6 B"
until = 2
time = [
  { at = 0, bits = 5, shift = 11, encoding = "signed", tick = "102.4 us" },
  { at = 2, bits = 12, encoding = "gray", frequency = "40 MHz" },
]
[readout.framing.hits.marker]
at = 4
bits = 1
shift = 7
value = 0
time = [{ at = 0, bits = 32, tick = "25.6 us" }, { at = -2, bits = 10, order = "little", frequency = "40 MHz" }]
chip = { at = 4, bits = 5, shift = 2 }
hit_chip = { at = 0, bits = 5, shift = 6 }
[[readout.unit]]
source = { type = "pcap", file = "vmm.pcapng" }
[builder]
units = 1
"#;

#[test]
fn hits_count_from_the_markers_of_their_chips() {
    let big = |at, bits, shift| Field { at, bits, shift, order: ByteOrder::Big };
    let part = |field, encoding, tick| TimeField { field, encoding, tick };
    let (clock, long) = (Tick::Frequency(Frequency(40_000_000_000)), Tick::Length(Span(102_400_000)));
    let expected = HitLayout {
        at: 16,
        size: 6,
        until: 2,
        time: vec![part(big(0, 5, 11), Encoding::Signed, long), part(big(2, 12, 0), Encoding::Gray, clock)],
        clock: HitClock::Marker(Marker {
            is: (big(4, 1, 7), 0),
            time: vec![
                part(big(0, 32, 0), Encoding::Plain, Tick::Length(Span(25_600_000))),
                part(Field { order: ByteOrder::Little, ..big(-2, 10, 0) }, Encoding::Plain, clock),
            ],
            chip: Some(big(4, 5, 2)),
            hit_chip: Some(big(0, 5, 6)),
        }),
    };
    let plan = plan(CHIPS, &[]);
    let framing = plan.sources[0].live().and_then(|live| live.framing.clone()).expect("a framing");
    assert_eq!(framing.hits, Some(Box::new(expected)));
}

#[test]
fn live_hits_go_into_slices() {
    let text = |slices: &str| {
        format!(
            "[readout]\n{slices}\n[readout.framing]\nsize = \"64 B\"\nclock = {{ at = 0, bits = 48, frequency = \"1 GHz\" }}\n\
             hits = {{ at = 8, size = \"8 B\", from = \"own\", time = [{{ at = 0, bits = 40, tick = \"8 ns\" }}] }}\n\
             [[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:9000\", clock_offset = \"2 s\", sort_depth = \"5 ms\" }}\n\
             [[readout.unit]]\nsource = {{ type = \"file\", file = \"a.raw\", latency = \"30 ms\" }}\n[builder]\nunits = 1\n"
        )
    };
    let live = |text: &str| -> Vec<LiveSpec> {
        plan(text, &[]).sources.iter().map(|source| source.live().expect("a live source").clone()).collect()
    };
    let sliced = live(&text("slice = \"1 ms\"\noverlap = \"10 us\""));
    let slicing = Slicing { length: Span::from_millis(1), overlap: Span::from_micros(10), from_ns: None };
    let slices = |offset, sort_depth, latency| Some(LiveSlicing { slicing, offset, sort_depth, latency });
    let (ms, s) = (Span::from_millis, Span::from_secs);
    assert_eq!(sliced[0].slices, slices(s(2), ms(5), ms(200)));
    assert_eq!(sliced[1].slices, slices(Span::ZERO, ms(1), ms(30)));
    assert_eq!(sliced[1].counter, EventCounter { bits: 64, first: FirstCounter::Known(1) });
    let hits = sliced[0].framing.as_ref().and_then(|framing| framing.hits.clone()).expect("hits");
    assert_eq!((hits.clock, hits.time[0].tick), (HitClock::Own, Tick::Length(Span(8000))));
    let known = live(&text("slice = \"1 ms\"\nslices_from = 0"));
    assert_eq!(known[1].slices.map(|slices| slices.slicing.from_ns), Some(Some(0)));
}

#[test]
fn clocks_of_boards_are_matched_by_time() {
    let text = "[trigger]\ntype = \"time\"\nwindow = \"1 us\"\nsource = 1\nduration = \"1 s\"\n[readout.framing]\nsize = \"16 B\"\n\
                clock = { at = 0, bits = 40, frequency = \"125 MHz\" }\n[[readout.unit]]\n\
                source = { type = \"tcp\", listen = \"127.0.0.1:9000\", sort_depth = \"5 ms\", optional = true }\n\
                [[readout.unit]]\nsource = { type = \"udp\", listen = \"127.0.0.1:9000\", clock_offset = \"2 ms\", latency = \"30 ms\" }\n\
                [builder]\nunits = 1\n";
    let plan = parse(text, &[]).plans()[0].clone();
    let clock = |offset, sort_depth, latency, needed| ClockSettings {
        tick_fs: 8_000_000,
        bits: 40,
        offset,
        sort_depth,
        latency,
        needed,
    };
    let known = ClockOffset::Known { seconds: 0, picoseconds: 2_000_000_000 };
    let sources = vec![
        clock(ClockOffset::Find, Span::from_millis(5), Span::from_millis(200), false),
        clock(known, Span::from_millis(1), Span::from_millis(30), true),
    ];
    let rule = evb_protocol::Rule::Trigger { source: 1, window: Span::from_micros(1) };
    let expected = Coincidence { rule, sources, patience: Span::from_secs(5) };
    assert_eq!(plan.building.coincidence, Some(expected));
    let building = (plan.building.trigger, plan.bundling.block, plan.building.buffer_events);
    assert_eq!(building, (Trigger::Data, 1, 65_536));
}
