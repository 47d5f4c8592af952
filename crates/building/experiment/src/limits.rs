//! Every limit of an experiment file, by name: no file, however odd, makes evb take memory or time without bound.

use evb_core::{Bandwidth, ByteCount, Frequency, Span};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Largest experiment file.
pub const MAX_FILE: ByteCount = ByteCount(MIB);
/// Most `--set` on one command line.
pub const MAX_OVERRIDES: usize = 1_000;
/// Longest text of one `--set`.
pub const MAX_OVERRIDE: ByteCount = ByteCount(64 * KIB);
/// Problems shown at once; more are only counted.
pub const MAX_PROBLEMS: usize = 20;
/// Problems after which the search for more ends.
pub const MAX_FOUND: usize = 100;
/// Deepest nesting of tables and lists.
pub const MAX_DEPTH: usize = 16;
/// Most points of a sweep.
pub const MAX_SWEEP_POINTS: usize = 1_000;
/// Most readout units of all points of a sweep together.
pub const MAX_SWEEP_SOURCES: usize = 100_000;

/// Most readout units and builder units together; node ids have 16 bits.
pub const MAX_UNITS: i64 = 60_000;
/// Most sources of all readout units together; their numbers have 16 bits.
pub const MAX_SOURCES: i64 = 65_535;
/// Most events in a block.
pub const MAX_BLOCK: i64 = 4_096;
/// Most filters in a chain.
pub const MAX_STEPS: usize = 64;
/// Most arguments of a filter program, its name included.
pub const MAX_ARGUMENTS: usize = 64;
/// Most filter units of a builder.
pub const MAX_FILTER_UNITS: i64 = 256;
/// Most events that a filter unit holds.
pub const MAX_HELD: i64 = 4096;
/// Most streams that a filter program can name.
pub const MAX_STREAMS: usize = 16;
/// Longest name of a stream, in bytes.
pub const MAX_STREAM_NAME: usize = 32;
/// Largest payload of an event that a filter can ask for.
pub const MAX_EVENT: ByteCount = ByteCount(GIB);
/// Most events under construction in one builder.
pub const MAX_SLOTS: i64 = 65_536;
/// Largest difference of the marks of one event.
pub const MAX_MARK_TOLERANCE: i64 = 65_535;
/// Most events in the buffer of a readout unit.
pub const MAX_BUFFER_EVENTS: i64 = 16_777_216;
/// Most fragments under construction in all builders together.
pub const MAX_FRAGMENTS: u64 = 1 << 28;
/// Most bytes in the buffer of a readout unit.
pub const MAX_BUFFER: ByteCount = ByteCount(64 * GIB);
/// Largest fragment that can be accepted. With a packet of the largest size it stays below what a transport takes.
pub const MAX_FRAGMENT: ByteCount = ByteCount(32 * MIB);
/// Smallest packet of grouped fragments.
pub const MIN_PACKET: ByteCount = ByteCount(64);
/// Largest packet of grouped fragments.
pub const MAX_PACKET: ByteCount = ByteCount(16 * MIB);
/// Most bytes that are on their way when a builder asks for the next bucket.
pub const MAX_LEAD: ByteCount = ByteCount(256 * MIB);
/// Most assignments in one message.
pub const MAX_GROUP: i64 = 65_536;
/// Assignments in one message by default, as in the CMS demonstrator.
pub const DEFAULT_GROUP: i64 = 352;
/// Events in the buffer of a readout unit by default, unless the builders can take more than half of it.
pub const DEFAULT_BUFFER_EVENTS: i64 = 4_096;
/// The same where fragments are matched by time.
pub const TIMED_BUFFER_EVENTS: i64 = 65_536;

/// Smallest size at which an event file is ended and a new one begun.
pub const MIN_FILE_SIZE: ByteCount = ByteCount(4 * KIB);
/// Largest size of one event file.
pub const MAX_FILE_SIZE: ByteCount = ByteCount(KIB * GIB);

/// Highest trigger rate.
pub const MAX_RATE: Frequency = Frequency(1_000_000_000_000);
/// Highest frequency of a front end's clock.
pub const MAX_CLOCK: Frequency = Frequency(1_000_000_000_000_000);
/// Longest run; a moment in picoseconds reaches 213 days.
pub const MAX_DURATION: Span = Span::from_secs(200 * 24 * 3600);
/// Shortest timeout.
pub const MIN_WAIT: Span = Span::from_micros(1);
/// Longest timeout.
pub const MAX_WAIT: Span = Span::from_secs(3600);
/// Most threads that carry nodes.
pub const MAX_WORKERS: i64 = 1_024;
/// Most faults brought about on purpose.
pub const MAX_FAULTS: usize = 1_000;
/// Most tables `[[background]]`.
pub const MAX_BACKGROUNDS: usize = 64;
/// Most nodes of the workload and of background traffic together: what 16 bits hold.
pub const MAX_NODES: i64 = 65_535;

/// Most tables `[[monitor]]`.
pub const MAX_MONITORS: usize = 256;
/// Most histograms of all these tables.
pub const MAX_HISTOGRAMS: usize = 1_024;
/// Most bins of a histogram.
pub const MAX_BINS: i64 = 4_096;
/// Most bins of all histograms together. A report of a builder stays well below the longest line of a control connection.
pub const MAX_ALL_BINS: u64 = 16_384;
/// Most fields of a part of a decoder.
pub const MAX_FIELDS: usize = 256;
/// Most numbers of a field that is an array, and most bytes of one without a meaning.
pub const MAX_IN_FIELD: i64 = 65_536;

/// Most hosts, switches of one kind, and links between two switches: what 16 bits hold.
pub const MAX_COUNT: i64 = 65_535;
/// Most ports of a network interface.
pub const MAX_PORTS: i64 = 4;
/// Most virtual channels of a link.
pub const MAX_CHANNELS: i64 = 8;
/// Most priorities of a switch, as in IEEE 802.1Q.
pub const MAX_PRIORITIES: i64 = 8;
/// Most links and most switches that are listed one by one.
pub const MAX_LISTED: usize = 16_384;
/// Largest file of a subnet manager: the tables of a thousand switches for four thousand hosts.
pub const MAX_FABRIC_FILE: ByteCount = ByteCount(256 * MIB);
/// Slowest link, and slowest memory of a host.
pub const MIN_BANDWIDTH: Bandwidth = Bandwidth(1_000);
/// Fastest link, and fastest memory of a host: one byte takes at least one picosecond.
pub const MAX_BANDWIDTH: Bandwidth = Bandwidth(8_000_000_000_000);
/// Largest packet on a link, and largest buffer of a switch.
pub const MAX_SWITCH_BUFFER: ByteCount = ByteCount(GIB);
/// Longest delay of a part of the network.
pub const MAX_DELAY: Span = Span::from_secs(1);
/// Messages of one sender that are in flight.
pub const MAX_WINDOW: i64 = 65_536;
/// Longest computing for one event.
pub const MAX_COMPUTE: Span = Span::from_secs(1);
/// Smallest load of a sender's link.
pub const MIN_LOAD: f64 = 1e-6;
/// Largest load of a sender's link: ten times what it can take.
pub const MAX_LOAD: f64 = 10.0;

/// Longest name of an experiment, in characters.
pub const MAX_NAME: usize = 255;
/// Longest path or address, in bytes.
pub const MAX_PATH: usize = 1_024;
