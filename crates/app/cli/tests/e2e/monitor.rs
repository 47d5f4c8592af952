//! Histograms that builders fill while they build: of frames with known hits, as the record, the service and its page have
//! them.

use crate::support::{Browser, Lab, PROCESSES, Service, THREADS, good, is_there, read_all};
use evb_events::Event;
use evb_record::{FindingKind, Histogram, Record};
use serde_json::Value;

/// Frames of each board.
const FRAMES: u32 = 2000;
/// A frame in this many has a byte too many.
const ODD_FRAMES: u32 = 100;
/// Bytes before the hits: magic, length and trigger.
const HEADER: usize = 10;
/// Bytes behind them.
const TRAILER: usize = 2;
const CHANNELS: u16 = 32;
/// A channel of the first board that always has hits.
const NOISY: u16 = 13;
/// A channel of the second board that never has any.
const SILENT: u16 = 20;

const BOARDS: &str = r#"
[trigger]
type = "data"

[readout.framing]
magic = "45 56 42 4d"
length = { at = 4, bits = 16 }
counter = { at = 6, bits = 32 }

[[readout.unit]]
source = { type = "file", file = "board0.raw", first_counter = 1 }
[[readout.unit]]
source = { type = "file", file = "board1.raw", first_counter = 1 }

[builder]
units = 2

[[monitor]]
field = "channel"
channels = 32
[monitor.decoder]
header = [{ name = "magic", type = "S4" }, { name = "length", type = "u2" }, { name = "trigger", type = "u4" }]
items = [{ name = "channel", type = "u2" }, { name = "charge", type = "u2" }]
trailer = [{ name = "sum", type = "u2" }]

[[monitor]]
name = "charges"
sources = ["ru1"]
field = "items.charge"
bins = 50
range = [100, 3100]
one_in = 10
decoder = { header = [{ name = "head", type = "u1", count = 10 }], items = [{ name = "channel", type = "u2" }, { name = "charge", type = "u2" }], trailer = [{ name = "sum", type = "u2" }] }

[[monitor]]
field = "size"
bins = 20
range = [0, 100]
"#;

/// The hits of a board at a trigger.
fn hits(board: u16, trigger: u32) -> Vec<(u16, u16)> {
    let number = trigger % 7;
    let regular = (0..number).map(|hit| (((trigger * 5 + hit * 11) % u32::from(CHANNELS)) as u16, hit, 0));
    let noise = (0..4).map(|hit| (NOISY, hit, 1)).filter(|_| board == 0);
    let all = regular.chain(noise).filter(|(channel, ..)| board == 0 || *channel != SILENT);
    all.map(|(channel, hit, kind)| (channel, ((trigger * 31 + hit * 577 + kind * 99) % 4096) as u16)).collect()
}

fn frame(board: u16, trigger: u32) -> Vec<u8> {
    let hits = hits(board, trigger).into_iter().flat_map(|(channel, charge)| [channel, charge]);
    let mut body: Vec<u8> = hits.flat_map(u16::to_le_bytes).collect();
    body.extend(vec![0; usize::from(trigger.is_multiple_of(ODD_FRAMES))]);
    let length = (HEADER + body.len() + TRAILER) as u16;
    [b"EVBM", &length.to_le_bytes()[..], &trigger.to_le_bytes(), &body, &[0; TRAILER]].concat()
}

fn lab() -> Lab {
    let lab = Lab::with(BOARDS);
    for board in 0..2 {
        let frames: Vec<u8> = (1..=FRAMES).flat_map(|trigger| frame(board, trigger)).collect();
        lab.write(&format!("board{board}.raw"), frames);
    }
    lab
}

/// The hits of a source in each event, as they are stored; `None` where the payload does not fit.
fn stored_hits(events: &[Event], source: u16) -> Vec<Option<Vec<[u16; 2]>>> {
    let of_event = |event: &Event| {
        let fragment = event.fragments.iter().find(|fragment| fragment.source.0 == source).expect("its fragment");
        let hits = &fragment.bytes[HEADER..fragment.bytes.len() - TRAILER];
        let number = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
        let hit = |bytes: &[u8]| [number(bytes), number(&bytes[2..])];
        hits.len().is_multiple_of(4).then(|| hits.chunks_exact(4).map(hit).collect())
    };
    events.iter().map(of_event).collect()
}

fn bins(values: impl Iterator<Item = u16>, from: u16, width: u16, number: usize) -> Vec<u64> {
    let mut bins = vec![0; number];
    for bin in values.filter_map(|value| Some(usize::from(value.checked_sub(from)? / width))) {
        bins.get_mut(bin).into_iter().for_each(|count| *count += 1);
    }
    bins
}

fn named<'a>(histograms: &'a [Histogram], name: &str) -> &'a Histogram {
    histograms.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn histograms_are_those_of_the_stored_events() {
    for mode in [THREADS, PROCESSES] {
        let lab = lab();
        let outcome = lab.run(mode).run();
        let record = good(&outcome);
        let events = read_all(&lab.stored_files()).events;
        assert_eq!(events.len(), FRAMES as usize, "{outcome}");
        for source in 0..2 {
            check_channels(&record.histograms, &events, source);
        }
        check_charges(&record.histograms, events);
        assert_eq!(named(&record.histograms, "size of ru0").entries, u64::from(FRAMES));
        check_findings(&record);
    }
}

fn check_channels(histograms: &[Histogram], events: &[Event], source: u16) {
    let histogram = named(histograms, &format!("channel of ru{source}"));
    let hits = stored_hits(events, source);
    let channels = || hits.iter().flatten().flatten().map(|[channel, _]| *channel);
    assert_eq!(histogram.bins, bins(channels(), 0, 1, CHANNELS.into()));
    let sum: f64 = channels().map(f64::from).sum();
    let mean = histogram.mean.expect("there are hits");
    assert!((mean - sum / channels().count() as f64).abs() < 1e-9, "{mean}");
    let unfit = u64::from(FRAMES / ODD_FRAMES);
    assert_eq!((histogram.unfit, histogram.fragments, histogram.missing), (unfit, u64::from(FRAMES) - unfit, 0));
}

/// One event in ten, some values outside.
fn check_charges(histograms: &[Histogram], mut events: Vec<Event>) {
    events.retain(|event| event.id.0.is_multiple_of(10));
    let hits = stored_hits(&events, 1);
    let charges = || hits.iter().flatten().flatten().map(|[_, charge]| *charge);
    let histogram = named(histograms, "charges");
    assert_eq!(histogram.bins, bins(charges(), 100, 60, 50));
    let outside =
        [charges().filter(|charge| *charge < 100).count(), charges().filter(|charge| *charge >= 3100).count()];
    assert_eq!([histogram.underflow, histogram.overflow], outside.map(|count| count as u64));
    assert_eq!((histogram.entries, histogram.one_in), (charges().count() as u64, 10));
}

fn check_findings(record: &Record) {
    let channels = [FindingKind::NoisyChannel, FindingKind::SilentChannel];
    let found = record.findings.iter().filter(|finding| channels.contains(&finding.kind));
    let messages: Vec<_> = found.map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            format!("channel of ru0: channel {NOISY} has far more entries than the others"),
            format!("channel of ru1: channel {SILENT} has no entries, and the neighbours have many"),
        ]
    );
}

/// The service has the histograms of the last run, its registry keeps them, and the status stays small.
#[test]
fn a_service_shows_histograms() {
    let lab = lab();
    let service = Service::start(&lab, &[]);
    service.command("start");
    let stopped = service.wait_for_state("stopped");
    assert!(stopped["record"]["histograms"].is_null(), "{stopped}");
    let shown = service.get("/api/histograms");
    let shown_ones = shown["histograms"].as_array().expect("a list");
    assert_eq!((&shown["run"], shown_ones.len()), (&1.into(), 5));
    let kept: Vec<Histogram> =
        serde_json::from_value(service.get("/api/runs/1")["record"]["histograms"].clone()).expect("histograms");
    for (one, kept) in shown_ones.iter().zip(&kept) {
        assert_eq!(&serde_json::from_value::<Histogram>(one.clone()).expect("a histogram"), kept);
    }
    assert_eq!(shown_ones[0]["noisy"], Value::from(vec![NOISY]));
    let metrics = service.ask("GET", "/metrics", None).body;
    let labels = "histogram=\"channel of ru1\",source=\"ru1\"";
    for line in [
        format!("evb_histogram_fragments_total{{{labels},state=\"unfit\"}} {}", FRAMES / ODD_FRAMES),
        format!("evb_histogram_odd_channels{{{labels},kind=\"silent\"}} 1.0"),
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
    if is_there("chromium") {
        look(&lab, &service);
    }
}

/// The page has a tile for each histogram.
fn look(lab: &Lab, service: &Service) {
    let mut page = Browser::start(&lab.path(""));
    page.open(&format!("http://{}/#token={}", service.place, service.token));
    page.wait_for_text("#panels", "channel of ru0");
    page.wait_for_text("#panels", &format!("noisy: channel {NOISY}"));
    page.wait_for_text("#panels", "20 payloads do not fit");
    page.picture("histograms.png");
    page.wait("a bar in another colour", "document.querySelector('.bars.odd[d]') !== null");
    assert_eq!(page.problems, [""; 0]);
}

/// Without payload a histogram of it is not filled, and a simulation says so.
#[test]
fn a_simulation_fills_sizes_only() {
    let text = BOARDS.split_once("[[monitor]]").expect("histograms").1;
    let nodes = "trigger.events = 100\nbuilder.units = 2\n[readout]\nunits = 2\nsource = { type = \"fixed\", size = \"52 B\" }\n";
    let lab = Lab::with(&format!("{nodes}[[monitor]]{text}"));
    let outcome = lab.simulate(&[]).run();
    let record = good(&outcome);
    let names: Vec<_> = record.histograms.iter().map(|one| (one.name.as_str(), one.bins[10])).collect();
    assert_eq!(names, [("size of ru0", 100), ("size of ru1", 100)]);
    assert!(record.findings.iter().any(|finding| finding.kind == FindingKind::NotFilled), "{outcome}");
}
