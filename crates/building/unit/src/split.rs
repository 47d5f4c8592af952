//! Bundles at a builder unit: split into the fragments of sources and events, checked, and counted by source.
//!
//! Fragments and their sizes are counted here and not in the machines, which count bundles: a rate of fragments that
//! depends on the size of blocks would mean nothing.

use crate::{Faults, Payload, Sizes, blocks::Blocks, bundle::BundlePart};
use evb_core::{EventId, SourceId};
use evb_experiment::Plan;
use evb_protocol::{BlockSize, Built, Fault, Filter, FirstPhase, Fragment, FragmentStatus, Protocol, Region};
use evb_record::Events;
use std::collections::{BTreeMap, HashMap};

/// Most sources with faults that a report names. A report must stay below the longest line of a control connection.
const MOST_NAMED: usize = 1000;

/// The faults of fragments that are counted by source. The machine counts them by bundle.
const BY_SOURCE: [Fault; 4] = [Fault::Missing, Fault::Corrupted, Fault::Oversized, Fault::Late];

/// Most events whose memory is kept for the next ones.
const MOST_SPARE: usize = 4096;

/// What is known about an event of a block without its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventDecision {
    /// Its fragments are wanted.
    Wanted,
    /// It is rejected.
    Rejected,
    /// It needs no storing, and is over.
    Unstored,
}

/// The bundles of one builder unit.
pub(crate) struct Splitter<B> {
    blocks: Blocks,
    /// The size of blocks may change.
    follows_load: bool,
    units: Vec<BundlingUnit>,
    /// The number of units of the first phase, where an event of a block may be rejected alone.
    first_phase: Option<usize>,
    filter: Filter,
    /// Blocks whose events are being stored.
    open: HashMap<EventId, OpenBlock<B>>,
    /// The bundles of the block that is being split, by unit.
    dealt: Vec<UnitBundle<B>>,
    /// The events of that block: true for those that are complete.
    complete: Vec<bool>,
    /// The bytes of these events.
    lengths: Vec<u64>,
    /// The index of the latest bundle that has come.
    parts: Vec<BundlePart>,
    /// Memory of events that are over.
    spare: Vec<Vec<Option<Fragment<B>>>>,
    ended: Events,
    /// Number of fragments in the bundles that have come.
    fragments: u64,
    sizes: Sizes,
    faults: BTreeMap<SourceId, BTreeMap<Fault, u64>>,
}

/// A readout unit, as seen from a builder.
struct BundlingUnit {
    bundles: bool,
    /// Sources that are read, and true for those that may have no fragment of an event.
    sources: Vec<(SourceId, bool)>,
}

/// What came from one readout unit.
struct UnitBundle<B> {
    kind: BundleKind,
    payload: B,
    /// The checksum of a payload that is not a bundle.
    checksum: u32,
    parts: Vec<BundlePart>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BundleKind {
    Nothing,
    /// The index is unreadable: the bytes are kept as those of the first source.
    Broken,
    /// The fragments in `parts`.
    Parts,
}

/// A source of an event, and what there is of it.
enum FoundFragment<'a> {
    Part(&'a BundlePart),
    Missing(SourceId),
    /// A fragment of a source that the unit does not have.
    Stranger(SourceId),
}

/// A block whose events are being stored.
struct OpenBlock<B> {
    /// The block for the machine, without fragments.
    block: Built<B>,
    /// Number of events that are not stored yet.
    left: usize,
    /// Events by outcome.
    ending: Events,
}

impl<B: Payload> Splitter<B> {
    /// The bundles of a plan, or `None` if no readout unit makes any.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        let bundling = &plan.bundling;
        let read = |unit| bundling.read_by(unit).map(|source| (source, bundling.suppression(source).is_some()));
        let unit = |unit| BundlingUnit { bundles: bundling.bundles(unit), sources: read(unit).collect() };
        (!bundling.is_plain()).then(|| Self {
            units: (0..plan.building.readout_units).map(unit).collect(),
            first_phase: match plan.building.protocol {
                Protocol::Phased { first: FirstPhase::Units(first), .. } if bundling.has_blocks() => Some(first.into()),
                Protocol::Push | Protocol::Pull | Protocol::Phased { .. } => None,
            },
            filter: Filter { seed: plan.filter.seed, accept: plan.filter.drawn.unwrap_or(1.0) },
            open: HashMap::new(),
            dealt: Vec::new(),
            complete: Vec::new(),
            lengths: Vec::new(),
            parts: Vec::new(),
            spare: Vec::new(),
            ended: Events::default(),
            fragments: 0,
            sizes: Sizes::default(),
            faults: BTreeMap::new(),
            blocks: Blocks::new(plan),
            follows_load: bundling.largest.is_some(),
        })
    }

    /// Returns true if a bundle or fragment has the bytes that its unit has sent. A good bundle is as its index says.
    #[inline]
    pub(crate) fn is_as_sent(&mut self, fragment: &Fragment<B>) -> bool {
        let bundles = self.units.get(fragment.source.index()).is_some_and(|unit| unit.bundles);
        if !bundles || fragment.status != FragmentStatus::Good {
            return B::checksum(fragment) == fragment.checksum;
        }
        let first = self.first_of(fragment);
        let parts = &mut self.parts;
        B::index_checksum(fragment) == fragment.checksum
            && B::parts(first, fragment, parts).is_ok()
            && parts.iter().all(|part| B::is_intact(&fragment.payload, part))
    }

    /// The first event of a bundle. It may overtake the news of another size of blocks, so its own word counts until
    /// the block is split.
    fn first_of(&self, bundle: &Fragment<B>) -> EventId {
        let own = B::first_event(bundle).filter(|_| self.follows_load);
        own.unwrap_or_else(|| EventId(self.blocks.events_of(bundle.event).start))
    }

    /// Takes the number of events in a block, from a block on.
    pub(crate) fn change_blocks(&mut self, size: BlockSize) {
        self.blocks.change(size);
    }

    /// Splits a block into its events. `fate` says what becomes of an event by its number, and whether it is complete;
    /// only those that are wanted get their fragments. The block ends when [`stored`](Self::stored) has all of them, or
    /// at once if there are none: then it is given back, too.
    pub(crate) fn split(
        &mut self,
        mut block: Built<B>,
        mut fate: impl FnMut(EventId, bool) -> EventDecision,
    ) -> (Vec<Built<B>>, Option<Built<B>>) {
        let of_block = self.blocks.events_of(block.event);
        let first = EventId(of_block.start);
        self.complete.clear();
        self.complete.resize(self.blocks.size(block.event) as usize, true);
        self.lengths.clear();
        self.lengths.resize(self.complete.len(), 0);
        self.dealt.resize_with(block.fragments.len(), UnitBundle::default);
        let mut seen = Vec::new();
        for (unit, bundle) in block.fragments.drain(..).enumerate() {
            if self.first_phase == Some(unit) {
                seen.clone_from(&self.complete);
            }
            self.deal(unit, first, bundle);
        }
        self.lengths.iter().for_each(|length| self.sizes.events.count(*length));
        let (mut events, mut ending) = (Vec::new(), Events::default());
        for (index, event) in of_block.map(EventId).enumerate() {
            let complete = self.complete[index];
            if seen.get(index).is_some_and(|seen| !self.filter.accepts(event, *seen)) {
                ending.rejected += 1;
                continue;
            }
            if !complete {
                self.count_faults(first, event);
            }
            let fate = fate(event, complete);
            *match (fate, complete) {
                (EventDecision::Rejected, _) => &mut ending.rejected,
                (_, true) => &mut ending.built,
                (_, false) => &mut ending.incomplete,
            } += 1;
            if fate == EventDecision::Wanted {
                events.push(self.assemble(&block, first, event, complete));
            }
        }
        self.dealt.iter_mut().for_each(|dealt| dealt.payload = B::default());
        block.complete = ending.incomplete == 0;
        let id = block.event;
        self.open.insert(id, OpenBlock { block, left: events.len(), ending });
        let ended = if events.is_empty() { self.end(id) } else { None };
        (events, ended)
    }

    /// Takes the bundle or fragment of a unit, and notes which events are not complete without it.
    fn deal(&mut self, unit: usize, first: EventId, bundle: Option<Fragment<B>>) {
        let (BundlingUnit { bundles, sources }, dealt) = (&self.units[unit], &mut self.dealt[unit]);
        dealt.take(first, bundle.filter(|bundle| bundle.status != FragmentStatus::Missing), *bundles, sources);
        if dealt.kind != BundleKind::Parts {
            return self.complete.fill(false);
        }
        self.fragments += dealt.parts.len() as u64;
        let (mut rest, faults) = (&dealt.parts[..], &mut self.faults);
        let mut stranger = |source| count(faults, source, Fault::Unexpected, 1);
        for (event, (complete, length)) in (first.0..).zip(self.complete.iter_mut().zip(&mut self.lengths)) {
            let (of_event, others) = rest.split_at(rest.iter().take_while(|part| part.event.0 == event).count());
            rest = others;
            for part in of_event {
                self.sizes.fragments.count(part.length.into());
                *length += u64::from(part.length);
            }
            compare(of_event, sources, |found| match found {
                FoundFragment::Part(part) => *complete &= part.status == FragmentStatus::Good,
                FoundFragment::Missing(_) => *complete = false,
                FoundFragment::Stranger(source) => stranger(source),
            });
        }
        rest.iter().for_each(|part| stranger(part.source));
    }

    /// Counts the faults of an event by source.
    fn count_faults(&mut self, first: EventId, event: EventId) {
        let faults = &mut self.faults;
        for (unit, dealt) in self.units.iter().zip(&self.dealt) {
            dealt.fragments_of(first, event, &unit.sources, |fragment| {
                if let Some(fault) = fault(fragment.status) {
                    count(faults, fragment.source, fault, 1);
                }
            });
        }
    }

    /// An event with its fragments, which share the memory of their bundles.
    fn assemble(&mut self, block: &Built<B>, first: EventId, event: EventId, complete: bool) -> Built<B> {
        let mut fragments = self.spare.pop().unwrap_or_default();
        for (unit, dealt) in self.units.iter().zip(&self.dealt) {
            dealt.fragments_of(first, event, &unit.sources, |fragment| fragments.push(Some(fragment)));
        }
        Built { event, opened: block.opened, complete, asked: Region::ALL, fragments }
    }

    /// Takes an event that is stored; returns its block if that was the last one.
    pub(crate) fn stored(&mut self, mut event: Built<B>) -> Option<Built<B>> {
        if self.spare.len() < MOST_SPARE {
            event.fragments.clear();
            self.spare.push(event.fragments);
        }
        let block = self.blocks.block_of(event.event);
        let open = self.open.get_mut(&block)?;
        open.left -= 1;
        if open.left == 0 { self.end(block) } else { None }
    }

    /// Takes an event that is rejected; returns its block if that was the last one.
    pub(crate) fn rejected(&mut self, event: Built<B>) -> Option<Built<B>> {
        let open = self.open.get_mut(&self.blocks.block_of(event.event))?;
        let ending = &mut open.ending;
        *(if event.complete { &mut ending.built } else { &mut ending.incomplete }) -= 1;
        ending.rejected += 1;
        self.stored(event)
    }

    fn end(&mut self, block: EventId) -> Option<Built<B>> {
        let OpenBlock { block, ending, .. } = self.open.remove(&block)?;
        self.ended.built += ending.built;
        self.ended.incomplete += ending.incomplete;
        self.ended.rejected += ending.rejected;
        Some(block)
    }

    /// The decision on a block after its first phase: it is built if any of its events is accepted.
    pub(crate) fn decide(&mut self, block: EventId, complete: bool) -> bool {
        let mut events = self.blocks.events_of(block).map(EventId);
        let accepted = events.any(|event| self.filter.accepts(event, complete));
        if !accepted {
            self.ended.rejected += self.blocks.size(block);
        }
        accepted
    }

    /// Counts the bundle of a block that came too late from a unit.
    pub(crate) fn count_late(&mut self, unit: u16, block: EventId) {
        for (source, _) in self.units.get(usize::from(unit)).iter().flat_map(|unit| &unit.sources) {
            count(&mut self.faults, *source, Fault::Late, self.blocks.size(block));
        }
    }

    /// Counts anew: the next run begins.
    pub(crate) fn next_run(&mut self) {
        self.ended = Events::default();
        self.fragments = 0;
        self.sizes = Sizes::default();
        self.faults.clear();
    }

    /// The part of the bytes of the block split last that belongs to complete events, taken as equally large.
    #[inline]
    pub(crate) fn complete_part(&self, bytes: u64) -> u64 {
        let complete = self.complete.iter().filter(|complete| **complete).count() as u64;
        bytes * complete / (self.complete.len() as u64).max(1)
    }

    /// Number of fragments in the bundles that have come.
    #[inline]
    pub(crate) const fn fragments(&self) -> u64 {
        self.fragments
    }

    /// The sizes of events and of their fragments.
    pub(crate) const fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Puts the counts by event and by source into a report, in place of those by bundle.
    pub(crate) fn report(&self, counts: &mut evb_record::BuilderRecord, faults: &mut Faults) -> BTreeMap<u16, Faults> {
        let Events { built, incomplete, rejected, .. } = self.ended;
        counts.built = built;
        counts.incomplete = incomplete;
        counts.rejected = rejected;
        counts.fragments = self.fragments;
        BY_SOURCE.iter().for_each(|fault| _ = faults.remove(fault.name()));
        let is_named = |fault: &Fault| BY_SOURCE.contains(fault) || *fault == Fault::Unexpected;
        for (fault, count) in self.faults.values().flatten().filter(|(fault, _)| is_named(fault)) {
            *faults.entry(fault.name().to_owned()).or_default() += count;
        }
        let named = |faults: &BTreeMap<Fault, u64>| {
            faults.iter().map(|(fault, count)| (fault.name().to_owned(), *count)).collect()
        };
        self.faults.iter().take(MOST_NAMED).map(|(source, faults)| (source.0, named(faults))).collect()
    }
}

fn count(faults: &mut BTreeMap<SourceId, BTreeMap<Fault, u64>>, source: SourceId, fault: Fault, number: u64) {
    *faults.entry(source).or_default().entry(fault).or_default() += number;
}

/// The fault that a status tells.
const fn fault(status: FragmentStatus) -> Option<Fault> {
    match status {
        FragmentStatus::Good => None,
        FragmentStatus::Corrupted => Some(Fault::Corrupted),
        FragmentStatus::Missing => Some(Fault::Missing),
        FragmentStatus::Oversized => Some(Fault::Oversized),
        FragmentStatus::Mismatched => Some(Fault::Mismatch),
    }
}

/// Compares the fragments that a unit has sent of an event with its sources.
#[inline]
fn compare<'a>(parts: &'a [BundlePart], sources: &[(SourceId, bool)], mut visit: impl FnMut(FoundFragment<'a>)) {
    let mut rest = parts.iter().peekable();
    for &(source, may_lack) in sources {
        while let Some(stranger) = rest.next_if(|part| part.source < source) {
            visit(FoundFragment::Stranger(stranger.source));
        }
        match rest.next_if(|part| part.source == source) {
            Some(part) => visit(FoundFragment::Part(part)),
            None if may_lack => {}
            None => visit(FoundFragment::Missing(source)),
        }
    }
    rest.for_each(|part| visit(FoundFragment::Stranger(part.source)));
}

impl<B: Payload> Default for UnitBundle<B> {
    fn default() -> Self {
        Self { kind: BundleKind::Nothing, payload: B::default(), checksum: 0, parts: Vec::new() }
    }
}

impl<B: Payload> UnitBundle<B> {
    /// Takes what has come from a unit with these sources. Only a good bundle was compared with its checksums when it
    /// came.
    fn take(&mut self, first: EventId, came: Option<Fragment<B>>, bundles: bool, sources: &[(SourceId, bool)]) {
        self.parts.clear();
        let Some(fragment) = came else { return self.kind = BundleKind::Nothing };
        self.kind = BundleKind::Parts;
        if !bundles {
            let source = sources.first().map_or(fragment.source, |(source, _)| *source);
            self.parts.push(BundlePart {
                event: first,
                source,
                length: B::length(&fragment),
                ..BundlePart::whole(&fragment)
            });
        } else if B::parts(first, &fragment, &mut self.parts).is_err() {
            self.kind = BundleKind::Broken;
        } else if fragment.status != FragmentStatus::Good {
            self.parts.iter_mut().for_each(|part| mark_corrupted(&fragment.payload, part));
        }
        self.payload = fragment.payload;
        self.checksum = fragment.checksum;
    }

    /// The fragments of an event, with one without data for each source that is missing.
    fn fragments_of(
        &self,
        first: EventId,
        event: EventId,
        sources: &[(SourceId, bool)],
        mut visit: impl FnMut(Fragment<B>),
    ) {
        let start = self.parts.partition_point(|part| part.event < event);
        let length = self.parts[start..].iter().take_while(|part| part.event == event).count();
        let empty = |source, status| Fragment {
            event,
            source,
            length: 0,
            checksum: 0,
            mark: None,
            counter: None,
            status,
            payload: B::default(),
        };
        match self.kind {
            BundleKind::Parts => compare(&self.parts[start..start + length], sources, |found| match found {
                FoundFragment::Part(part) => visit(B::part(&self.payload, part)),
                FoundFragment::Missing(source) => visit(empty(source, FragmentStatus::Missing)),
                FoundFragment::Stranger(_) => {}
            }),
            BundleKind::Nothing => {
                sources.iter().for_each(|(source, _)| visit(empty(*source, FragmentStatus::Missing)))
            }
            BundleKind::Broken => {
                let mut whole = Some((self.payload.clone(), self.checksum)).filter(|_| event == first);
                for (source, _) in sources {
                    let (payload, checksum) = whole.take().unwrap_or_default();
                    let fragment = Fragment { payload, checksum, ..empty(*source, FragmentStatus::Corrupted) };
                    visit(Fragment { length: B::length(&fragment), ..fragment });
                }
            }
        }
    }
}

/// Marks a fragment that is not as its checksum says. The file keeps the bytes as they are, and a checksum that fits
/// them.
fn mark_corrupted<B: Payload>(bundle: &B, part: &mut BundlePart) {
    if !B::is_intact(bundle, part) {
        part.checksum = B::checksum(&B::part(bundle, part));
        part.status = FragmentStatus::Corrupted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use evb_experiment::Bundling;
    use evb_protocol::Config;
    use evb_sources::SourceSpec;

    /// Two units with two sources each, and blocks of two events.
    fn splitter() -> Splitter<Bytes> {
        let mut plan = Plan::new(Config::new(2, 1), SourceSpec::Fixed { size: "2 B".parse().unwrap() });
        plan.bundling = Bundling { block: 2, bounds: vec![0, 2, 4], ..Bundling::default() };
        Splitter::new(&plan).expect("there are bundles")
    }

    fn fragment(event: u64, source: u16, payload: &'static [u8]) -> Fragment<Bytes> {
        Fragment {
            event: EventId(event),
            source: SourceId(source),
            length: payload.len() as u32,
            checksum: evb_core::checksum(payload),
            mark: None,
            counter: None,
            status: FragmentStatus::Good,
            payload: Bytes::from_static(payload),
        }
    }

    /// The bundle of a unit for the events 3 and 4.
    fn bundle(unit: u16, fragments: &[Fragment<Bytes>]) -> Fragment<Bytes> {
        let (payload, length, checksum) = Bytes::bundle(EventId(3), fragments);
        Fragment { length, checksum, payload, ..fragment(2, unit, b"") }
    }

    fn all_of(unit: u16) -> Fragment<Bytes> {
        let places = [(3, 0), (3, 1), (4, 0), (4, 1)];
        bundle(unit, &places.map(|(event, source)| fragment(event, 2 * unit + source, b"ab")))
    }

    /// The outcome of block 2, whose events are stored at once, and the sources with their faults.
    fn outcome(bundles: [Option<Fragment<Bytes>>; 2]) -> (bool, evb_record::BuilderRecord, BTreeMap<u16, Faults>) {
        let mut splitter = splitter();
        let built = Built {
            event: EventId(2),
            opened: evb_core::Time::ZERO,
            complete: true,
            asked: Region::ALL,
            fragments: bundles.into(),
        };
        let (mut events, ended) = splitter.split(built, |_, _| EventDecision::Wanted);
        assert!(ended.is_none() && events.iter().map(|event| event.event.0).eq([3, 4]));
        let sources = |event: &Built<Bytes>| event.fragments.iter().flatten().map(|one| one.source.0).eq(0..4);
        assert!(events.iter().all(sources));
        assert_eq!(splitter.stored(events.remove(0)), None);
        let block = splitter.stored(events.remove(0)).expect("the last event ends the block");
        let mut counts = evb_record::BuilderRecord::default();
        let faults = splitter.report(&mut counts, &mut Faults::new());
        (block.complete, counts, faults)
    }

    fn faults_of(source: u16, fault: Fault, count: u64) -> (u16, Faults) {
        (source, [(fault.name().to_owned(), count)].into())
    }

    #[test]
    fn good_bundles_are_complete_events() {
        let (complete, counts, faults) = outcome([Some(all_of(0)), Some(all_of(1))]);
        assert_eq!((complete, counts.built, counts.incomplete, faults.len()), (true, 2, 0, 0));
    }

    #[test]
    fn fragments_and_sizes_are_those_of_sources_and_events() {
        let mut splitter = splitter();
        let fragments = vec![Some(all_of(0)), Some(all_of(1))];
        let built =
            Built { event: EventId(2), opened: evb_core::Time::ZERO, complete: true, asked: Region::ALL, fragments };
        splitter.split(built, |_, _| EventDecision::Unstored);
        let mut sizes = Sizes::default();
        (0..8).for_each(|_| sizes.fragments.count(2));
        (0..2).for_each(|_| sizes.events.count(8));
        assert_eq!((splitter.fragments(), splitter.sizes()), (8, &sizes));
        splitter.next_run();
        assert_eq!((splitter.fragments(), splitter.sizes()), (0, &Sizes::default()));
    }

    #[test]
    fn a_bundle_may_overtake_the_news_of_its_size() {
        let mut plan = Plan::new(Config::new(1, 1), SourceSpec::Fixed { size: "2 B".parse().unwrap() });
        plan.bundling = Bundling { largest: Some(2), ..Bundling::default() };
        let mut splitter = Splitter::new(&plan).expect("there are blocks");
        let bundle = bundle(0, &[fragment(3, 0, b"ab"), fragment(4, 0, b"ab")]);
        assert!(splitter.is_as_sent(&bundle), "it says itself that it begins with event 3");
        // The size is known when the block is split. A bundle of other events would be a bad one.
        for (first, expected) in [(3, [true, true]), (2, [false, false])] {
            splitter.change_blocks(BlockSize { from: EventId(2), first: EventId(first), events: 2 });
            let fragments = vec![Some(bundle.clone())];
            let built = Built {
                event: EventId(2),
                opened: evb_core::Time::ZERO,
                complete: true,
                asked: Region::ALL,
                fragments,
            };
            let (events, _) = splitter.split(built, |_, _| EventDecision::Wanted);
            assert_eq!(events.iter().map(|event| event.complete).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn one_bad_or_absent_fragment_spoils_its_event_alone() {
        let damaged = Fragment { payload: Bytes::from_static(b"aX"), ..fragment(3, 2, b"ab") };
        let rest = [damaged, fragment(3, 3, b"ab"), fragment(4, 2, b"ab"), fragment(4, 3, b"ab")];
        // A unit says so when a fragment is not as its checksum says, and only then payloads are compared again.
        let spoiled = Fragment { status: FragmentStatus::Corrupted, ..bundle(1, &rest) };
        let (complete, counts, faults) = outcome([Some(all_of(0)), Some(spoiled)]);
        assert_eq!((complete, counts.built, counts.incomplete), (false, 1, 1));
        assert_eq!(faults, [faults_of(2, Fault::Corrupted, 1)].into());
        let (_, counts, faults) = outcome([Some(all_of(0)), Some(bundle(1, &rest[1..3]))]);
        assert_eq!((counts.built, counts.incomplete), (0, 2));
        assert_eq!(faults, [faults_of(2, Fault::Missing, 1), faults_of(3, Fault::Missing, 1)].into());
    }

    #[test]
    fn missing_and_broken_bundles_are_counted_by_source() {
        let (_, counts, faults) = outcome([None, Some(all_of(1))]);
        assert_eq!((counts.built, counts.incomplete), (0, 2));
        assert_eq!(faults, [faults_of(0, Fault::Missing, 2), faults_of(1, Fault::Missing, 2)].into());
        let broken = fragment(2, 0, b"no bundle at all");
        let (_, _, faults) = outcome([Some(broken), Some(all_of(1))]);
        assert_eq!(faults, [faults_of(0, Fault::Corrupted, 2), faults_of(1, Fault::Corrupted, 2)].into());
    }

    #[test]
    fn a_bundle_that_changed_on_its_way_is_not_as_sent() {
        let (mut splitter, sent) = (splitter(), all_of(0));
        let changed = |at: usize| {
            let mut bytes = sent.payload.to_vec();
            bytes[at] ^= 1;
            Fragment { payload: bytes.into(), ..sent.clone() }
        };
        assert!(splitter.is_as_sent(&sent));
        for at in 0..sent.payload.len() {
            assert!(!splitter.is_as_sent(&changed(at)), "byte {at}");
        }
        // What the unit knows to be bad has the checksum of all its bytes.
        let mut bad = Fragment { status: FragmentStatus::Corrupted, ..changed(0) };
        assert!(!splitter.is_as_sent(&bad));
        bad.checksum = Bytes::checksum(&bad);
        assert!(splitter.is_as_sent(&bad));
        assert!(!splitter.is_as_sent(&Fragment { event: EventId(3), ..sent }), "it is the bundle of another block");
    }

    #[test]
    fn only_wanted_events_get_fragments_and_all_are_counted() {
        let built = || {
            let fragments = [0, 1].map(|unit| Some(all_of(unit))).into();
            Built { event: EventId(2), opened: evb_core::Time::ZERO, complete: true, asked: Region::ALL, fragments }
        };
        let mut splitter = splitter();
        let (events, ended) = splitter.split(built(), |event, complete| match (event.0, complete) {
            (3, true) => EventDecision::Rejected,
            _ => EventDecision::Wanted,
        });
        assert!(ended.is_none() && events.iter().map(|event| event.event.0).eq([4]));
        assert!(events.into_iter().all(|event| event.fragments.len() == 4 && splitter.stored(event).is_some()));
        let (events, ended) = splitter.split(built(), |_, _| EventDecision::Unstored);
        assert!(events.is_empty() && ended.is_some_and(|block| block.complete));
        let mut counts = evb_record::BuilderRecord::default();
        splitter.report(&mut counts, &mut Faults::new());
        assert_eq!((counts.built, counts.incomplete, counts.rejected), (3, 0, 1));
    }
}
