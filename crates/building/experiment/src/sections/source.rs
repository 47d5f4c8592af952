//! The source of a readout unit, `readout.source` and `[[readout.unit]]`: where its fragments come from.

use super::{
    coincidence::{CLOCK_OFFSET, LATENCY, OPTIONAL, SORT_DEPTH},
    framing, front_end_control, links,
};
use crate::{choice::*, diagnostics::Problem, limits::*, schema::*, tree::Node, view::View};
use evb_core::{ByteCount, EventCounter, FirstCounter, Frequency, SourceId};
use evb_sources::{EudaqProducer, FrontEndLink, HIT_TIME_BYTES, LiveSlicing, LiveSpec, Slicing, SourceSpec};

/// The keys of a live source: its own, and those of all.
macro_rules! live_keys {
    ($($own:expr),+) => {
        &[$($own,)+ COUNTER_BITS, FIRST_COUNTER, IDENTITY, FRAMING_KEY, SORT_DEPTH, LATENCY, CLOCK_OFFSET, OPTIONAL]
    };
}

/// Each table of a list of sources.
pub(super) static TABLE: KeyKind = KeyKind::Choice(&SOURCE);

pub(super) static SOURCE: Choice<Source> = Choice {
    tag: "type",
    what: "source",
    default: KeyDefault::Required,
    common: &[
        optional("masked", KeyKind::Flag, "true for a source that is neither read nor expected; the record lists it"),
        optional(
            "suppressed",
            number(0.0, 1.0),
            "zero suppression: part of the events of which a generated source has no fragment, drawn by seed and event; \
             such an event is complete",
        ),
    ],
    variants: &[
        variant(
            "fixed",
            "generated, all of one size",
            &[required("size", bytes(1, MAX_FRAGMENT), "size of every fragment")],
            generated(|view| SourceSpec::Fixed { size: view.quantity("size") }),
        ),
        variant(
            "uniform",
            "generated, sizes uniform between two bounds, both included",
            &[
                required("min", bytes(1, MAX_FRAGMENT), "smallest size"),
                required("max", bytes(1, MAX_FRAGMENT), "largest size"),
            ],
            generated(|view| SourceSpec::Uniform { min: view.quantity("min"), max: view.quantity("max") }),
        ),
        variant(
            "log-normal",
            "generated, sizes log-normal",
            &[
                required("mean", bytes(1, MAX_FRAGMENT), "mean size"),
                required("rms", bytes(0, MAX_FRAGMENT), "rms deviation from the mean"),
            ],
            generated(|view| SourceSpec::LogNormal { mean: view.quantity("mean"), rms: view.quantity("rms") }),
        ),
        variant(
            "trace",
            "generated, sizes from a CSV file `event,source,bytes`",
            &[FILE, optional("source", integer(0, i64::MAX), "rows to take; by default the number of the source")],
            Source {
                feed: Feed::Recorded,
                make: |view| SourceSpec::Trace { file: view.path("file"), source: view.maybe_integer("source") },
            },
        ),
        variant(
            "size-model",
            "generated, sizes from a CSV file `FED,offset,slope,square,rms` with one relative size for the whole event",
            &[
                FILE,
                optional("fed", integer(0, i64::MAX), "FED to take; by default the row of the number of the source"),
                key("event_size_mean", number(1e-3, 1e3), KeyDefault::Number(1.0), "mean relative size of an event"),
                key("event_size_rms", number(0.0, 1e3), KeyDefault::Number(0.0), "rms of it, log-normal"),
            ],
            generated(|view| SourceSpec::SizeModel {
                file: view.path("file"),
                fed: view.maybe_integer("fed"),
                event_size_mean: view.number("event_size_mean"),
                event_size_rms: view.number("event_size_rms"),
            }),
        ),
        variant(
            "hits",
            "generated, without a trigger: hits at random times, cut into slices of `readout.slice`; each hit begins with \
             its time in nanoseconds",
            &[
                required("rate", KeyKind::Rate { min: Frequency(1), max: MAX_RATE }, "mean rate of the hits"),
                key("size", bytes(HIT_TIME_BYTES, MAX_FRAGMENT), KeyDefault::Text("16 B"), "bytes of a hit"),
            ],
            generated(|view| SourceSpec::Hits {
                rate: view.quantity("rate"),
                size: view.quantity("size"),
                slicing: Slicing::default(),
            }),
        ),
        variant(
            "hit-file",
            "recorded without a trigger: a file of hits of one size, in the order of their times, cut into slices of \
             `readout.slice`; each hit begins with its time in nanoseconds, 64 bits, little-endian",
            &[FILE, key("size", bytes(HIT_TIME_BYTES, MAX_FRAGMENT), KeyDefault::Text("16 B"), "bytes of a hit")],
            Source {
                feed: Feed::Recorded,
                make: |view| SourceSpec::HitFile {
                    file: view.path("file"),
                    size: view.quantity("size"),
                    slicing: Slicing::default(),
                },
            },
        ),
        variant(
            "cms-fed",
            "recorded CMS front-end driver fragments, back to back in a file",
            &[
                FILE,
                optional(
                    "source_id",
                    integer(0, 4095),
                    "source id that every fragment must have; by default that of the first good one",
                ),
                key(
                    "damaged",
                    KeyKind::Word(&DAMAGED),
                    KeyDefault::Text("use"),
                    "what happens to a file with damaged fragments, one that is cut off or padded included",
                ),
                IDENTITY,
            ],
            Source {
                feed: Feed::Recorded,
                make: |view| SourceSpec::CmsFed {
                    file: view.path("file"),
                    source_id: view.maybe_integer("source_id"),
                    refuse_damaged: DAMAGED.at(view, "damaged"),
                },
            },
        ),
        variant(
            "tcp",
            "live front ends that connect by TCP",
            live_keys![LISTEN, CONTROL],
            live(|view| live_spec(view, FrontEndLink::Tcp(view.text("listen").to_owned()))),
        ),
        variant(
            "udp",
            "live front ends that send UDP datagrams",
            live_keys![LISTEN, CONTROL],
            live(|view| live_spec(view, FrontEndLink::Udp(view.text("listen").to_owned()))),
        ),
        variant(
            "tcp-client",
            "a live front end that listens for a connection by TCP; evb connects again when it ends",
            live_keys![required("connect", KeyKind::Address, "address of the front end"), CONTROL],
            live(|view| live_spec(view, FrontEndLink::TcpClient(view.text("connect").to_owned()))),
        ),
        variant(
            "serial",
            "a live front end at a serial line of the machine of the readout unit",
            live_keys![
                required("device", KeyKind::Path, "device of the line, such as \"/dev/ttyUSB0\""),
                key("baud", integer(50, 16_000_000), KeyDefault::Integer(115_200), "bits per second"),
                CONTROL
            ],
            live(|view| {
                live_spec(view, FrontEndLink::Serial { device: view.path("device"), baud: view.integer("baud") })
            }),
        ),
        variant(
            "file",
            "what a live front end has sent, in a file: it is read to its end as if it came from the front end",
            live_keys![FILE],
            live(|view| live_spec(view, FrontEndLink::File(view.path("file")))),
        ),
        variant(
            "pcap",
            "what live front ends have sent by UDP, in a capture file, PCAP or PCAPNG",
            live_keys![
                FILE,
                optional("port", integer(1, 65_535), "port that the datagrams were sent to; any by default"),
                key("pace", KeyKind::Word(&PACE), KeyDefault::Text("fast"), "when datagrams come")
            ],
            live(|view| {
                let (file, port, paced) = (view.path("file"), view.maybe_integer("port"), PACE.at(view, "pace"));
                live_spec(view, FrontEndLink::Capture { file, port, paced })
            }),
        ),
        variant(
            EUDAQ,
            "the events of one producer in a file that EUDAQ has recorded, version 1 or 2",
            &[
                FILE,
                required(
                    "producer",
                    KeyKind::Text,
                    "description of its events, such as \"TluRawDataEvent\"; in a file of version 1 the type of its raw \
                     data, or \"TLU\"",
                ),
                optional(
                    "device",
                    integer(0, u32::MAX as i64),
                    "its device number in a file of version 2, where several producers have one description",
                ),
                FIRST_COUNTER,
                IDENTITY,
                optional(
                    "frequency",
                    KeyKind::Rate { min: Frequency(1), max: MAX_CLOCK },
                    "ticks per second of its timestamps, for the trigger \"time\"",
                ),
                SORT_DEPTH,
                LATENCY,
                CLOCK_OFFSET,
                OPTIONAL,
            ],
            live(eudaq),
        ),
    ],
};

/// A kind of source.
pub(super) struct Source {
    feed: Feed,
    make: Make<SourceSpec>,
}

/// The origin of the number of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    /// No origin: fragments are made for any event.
    Generated,
    /// A file.
    Recorded,
    /// Front ends.
    Live,
}

const fn generated(make: Make<SourceSpec>) -> Source {
    Source { feed: Feed::Generated, make }
}

const fn live(make: Make<SourceSpec>) -> Source {
    Source { feed: Feed::Live, make }
}

/// The type of a source with frames that no framing describes.
pub(super) const EUDAQ: &str = "eudaq";
/// Bits of an event number of EUDAQ.
const EUDAQ_COUNTER_BITS: u8 = 32;

const FILE: Key = required("file", KeyKind::Path, "the file; a relative path starts from `data.directory`");

const LISTEN: Key = required("listen", KeyKind::Address, "address to listen on; port 0 is any free one");
const COUNTER_BITS: Key = key(
    "counter_bits",
    integer(1, 64),
    KeyDefault::Derived("32; with a framing, the width of its counter"),
    "width of the front end's event counter",
);
const FIRST_COUNTER: Key = optional(
    "first_counter",
    KeyKind::IntegerOr { min: 0, max: i64::MAX, word: "any" },
    "number of the front end's first trigger; \"any\" if its first fragment is that of the first trigger, whatever its \
     number is. Without it and without marks, nothing confirms that counters of different sources belong together",
);
const FRAMING_KEY: Key = optional(
    "framing",
    KeyKind::Section(framing::FRAMING),
    "the framing of its fragments, if it is not evb's own; by default that of `readout.framing`",
);

const CONTROL: Key = optional(
    "control",
    KeyKind::Section(front_end_control::CONTROL),
    "the connection by which the front end hears run control: settings, start and stop; by default it hears nothing. See \
     [its lines](front-end-control.md)",
);

/// The use of the second identity of a fragment.
const IDENTITY: Key = key(
    "identity",
    KeyKind::Word(&TOLERANT),
    KeyDefault::Text("strict"),
    "what a mark beside the event number (bunch crossing, orbit, timestamp) means for an event",
);

/// The words for marks that must agree (false) or may disagree (true).
static TOLERANT: Words<bool> = Words(&[
    word("strict", "the marks of all fragments of an event must agree, where they carry one", false),
    word("tolerant", "a mark that disagrees is counted, and the event stays complete", true),
]);

/// The words for datagrams as fast as they are taken (false) or at the intervals of their capture (true).
static PACE: Words<bool> = Words(&[
    word("fast", "as fast as they are taken", false),
    word("captured", "at the intervals at which they were captured", true),
]);

/// The words for files with damage that are used (false) or refused (true).
static DAMAGED: Words<bool> = Words(&[
    word("use", "its good fragments are used; the damage is counted, and the result is not good", false),
    word("refuse", "the run does not begin", true),
]);

fn live_spec(view: View<'_>, link: FrontEndLink) -> SourceSpec {
    // Where there are no slices, the plan leaves them out.
    let slices = LiveSlicing {
        slicing: Slicing::default(),
        offset: view.maybe_quantity("clock_offset").unwrap_or_default(),
        sort_depth: view.quantity("sort_depth"),
        latency: view.quantity("latency"),
    };
    let (framing, control) = (framing::make(view), front_end_control::make(view));
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter: counter(view),
        framing,
        slices: Some(slices),
        control,
        shared: Vec::new(),
    }))
}

fn eudaq(view: View<'_>) -> SourceSpec {
    let producer = EudaqProducer { name: view.text("producer").to_owned(), device: view.maybe_integer("device") };
    let link = FrontEndLink::Eudaq { file: view.path("file"), producer: producer.into() };
    let counter = EventCounter { bits: EUDAQ_COUNTER_BITS, first: first_counter(view) };
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter,
        framing: None,
        slices: None,
        control: None,
        shared: Vec::new(),
    }))
}

/// The event counter of a live source.
fn counter(view: View<'_>) -> EventCounter {
    EventCounter { bits: view.integer("counter_bits"), first: first_counter(view) }
}

fn first_counter(view: View<'_>) -> FirstCounter {
    let known = view.maybe_integer("first_counter").map(FirstCounter::Known);
    let is_any = view.maybe_text("first_counter").is_some();
    known.unwrap_or(if is_any { FirstCounter::Any } else { FirstCounter::Unknown })
}

/// The source that a table describes.
pub(super) fn make(table: View<'_>) -> SourceSpec {
    (SOURCE.of(table).make)(table)
}

/// The origin of the number of events of a source.
pub(super) fn feed(table: View<'_>) -> Feed {
    SOURCE.of(table).feed
}

/// The tables of all sources, in the order of the units.
pub(crate) fn all(view: View<'_>) -> impl Iterator<Item = View<'_>> {
    (0..view.integer("readout.units")).flat_map(move |unit| of_unit(view, unit))
}

/// The tables of the sources of the readout unit with this index. Units without a table share the source of all.
pub(crate) fn of_unit(view: View<'_>, unit: usize) -> Vec<View<'_>> {
    match view.list("readout.unit").get(unit) {
        Some(table) => in_table(table).map(View).collect(),
        None => {
            let shared = view.0.at("readout.source").map(View);
            std::iter::repeat_n(shared, shared_by(view, unit)).flatten().collect()
        }
    }
}

/// The sources in the table of a readout unit.
fn in_table(unit: &Node) -> impl Iterator<Item = &Node> {
    unit.at("source").into_iter().chain(unit.at("sources").and_then(Node::list).unwrap_or(&[]))
}

/// Units whose source numbers its fragments by itself.
pub(super) fn numbered(view: View<'_>) -> Vec<SourceId> {
    units(view, |source| make(source).is_numbered())
}

/// Units whose marks may disagree with those of others.
pub(super) fn tolerant(view: View<'_>) -> Vec<SourceId> {
    units(view, |source| source.has("identity") && TOLERANT.at(source, "identity"))
}

/// The units that have such a source. The machines take a unit for one source.
fn units(view: View<'_>, is_such: impl Fn(View<'_>) -> bool) -> Vec<SourceId> {
    let has = |unit: &u16| of_unit(view, (*unit).into()).into_iter().any(&is_such);
    (0..view.integer("readout.units")).filter(has).map(SourceId).collect()
}

/// The sources that units have, each once, with the place of its `type`.
pub(super) fn used(view: View<'_>) -> Vec<View<'_>> {
    let (own, units) = (view.list("readout.unit"), view.integer::<usize>("readout.units"));
    let shared = view.0.at("readout.source").filter(|_| own.len() < units);
    own.iter().flat_map(in_table).chain(shared).map(View).collect()
}

/// Returns true if a framing says what the frames of a source are, in an unchecked tree.
pub(super) fn has_frames(table: &Node) -> bool {
    let is_eudaq = table.at("type").and_then(Node::text) == Some(EUDAQ);
    written_feed(table) == Some(Feed::Live) && !is_eudaq
}

/// The origin of the number of events of a source, in an unchecked tree.
pub(super) fn written_feed(table: &Node) -> Option<Feed> {
    SOURCE.written(Some(table)).map(|source| source.feed)
}

/// True if a source is recorded or live, in an unchecked tree.
pub(super) fn has_data(root: &Node) -> bool {
    let is_data = |table: &Node| written_feed(table).is_some_and(|feed| feed != Feed::Generated);
    written(root).any(is_data)
}

/// The tables of the sources that units have, each once, in an unchecked tree.
fn written(root: &Node) -> impl Iterator<Item = &Node> {
    let units = root.at("readout.unit").and_then(Node::list).unwrap_or(&[]);
    let count = root.at("readout.units").and_then(Node::integer).unwrap_or(0);
    let shared = root.at("readout.source").filter(|_| i64::try_from(units.len()).is_ok_and(|given| given < count));
    units.iter().flat_map(in_table).chain(shared)
}

/// The usual size of the largest fragments that sources have, in an unchecked tree; `None` if the file does not say it.
pub(super) fn usual_size(root: &Node) -> Option<ByteCount> {
    written(root).map(size_of).try_fold(ByteCount(0), |largest, size| Some(largest.max(size?)))
}

/// The usual size of the fragments of a source.
fn size_of(table: &Node) -> Option<ByteCount> {
    let key = match table.at("type")?.text()? {
        "fixed" => "size",
        "uniform" => "max",
        "log-normal" => "mean",
        _ => return None,
    };
    table.at(key)?.text()?.parse().ok()
}

/// Checks sizes, addresses and framings.
pub(super) fn check(view: View<'_>) -> impl Iterator<Item = Problem> {
    let framings = used(view).into_iter().filter_map(framing::check);
    let controls = used(view).into_iter().filter_map(move |source| front_end_control::check(view, source));
    sizes(view).into_iter().chain(links::check(view)).chain(framings.take(MAX_FOUND)).chain(controls.take(MAX_FOUND))
}

/// Sizes of generated fragments must be possible.
fn sizes(view: View<'_>) -> Vec<Problem> {
    let limit: ByteCount = view.quantity("readout.max_fragment");
    let too_large = |source: View<'_>, key: &str| {
        let size: ByteCount = source.maybe_quantity(key)?;
        (size > limit).then(|| {
            let message = format!("`{key}` of {size} is above the largest fragment of {limit}");
            let help = format!("lower `{key}`, or raise `readout.max_fragment` in [readout]");
            Problem::new(message, help)
                .at(source.origin(key), "too large")
                .at(view.origin("readout.max_fragment"), "largest fragment")
        })
    };
    let used = used(view);
    let swapped = used.iter().filter_map(|source| {
        let (min, max): (ByteCount, ByteCount) = (source.maybe_quantity("min")?, source.maybe_quantity("max")?);
        (min > max).then(|| {
            Problem::new(format!("`min` of {min} is above `max` of {max}"), "swap the two")
                .at(source.origin("min"), "min")
                .at(source.origin("max"), "max")
        })
    });
    let large = used.iter().flat_map(|&source| ["size", "max", "mean"].map(|key| too_large(source, key)));
    swapped.chain(large.flatten()).take(MAX_FOUND).collect()
}

/// Number of sources of a unit without a table.
fn shared_by(view: View<'_>, unit: usize) -> usize {
    let tables = view.list("readout.unit").len();
    let units = view.integer::<usize>("readout.units").saturating_sub(tables);
    match view.maybe_integer::<usize>("readout.sources") {
        Some(sources) if units > 0 => sources / units + usize::from(unit - tables < sources % units),
        _ => 1,
    }
}
