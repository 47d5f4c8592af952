//! Bundles at a builder unit: split into the fragments of sources and events, checked, and counted by source.

use crate::{Faults, Payload};
use evb_core::{EventId, SourceId};
use evb_experiment::{Bundling, Plan};
use evb_protocol::{Built, Fault, Filter, First, Fragment, FragmentStatus, Protocol, Region};
use evb_record::Events;
use std::collections::{BTreeMap, HashMap};

/// Most sources with faults that a report names. A report must stay below the longest line of a control connection.
const MOST_NAMED: usize = 1000;

/// The faults of fragments that are counted by source. The machine counts them by bundle.
const BY_SOURCE: [Fault; 4] = [Fault::Missing, Fault::Corrupted, Fault::Oversized, Fault::Late];

/// The bundles of one builder unit.
pub(crate) struct Splitter<B> {
    bundling: Bundling,
    units: Vec<Unit>,
    /// The number of units of the first phase, where an event of a block may be rejected alone.
    first_phase: Option<usize>,
    filter: Filter,
    /// Blocks whose events are being stored.
    open: HashMap<EventId, Open<B>>,
    ended: Events,
    faults: BTreeMap<SourceId, BTreeMap<Fault, u64>>,
}

/// A readout unit, as seen from a builder.
struct Unit {
    bundles: bool,
    /// Sources that are read, and true for those that may have no fragment of an event.
    sources: Vec<(SourceId, bool)>,
}

/// A block whose events are being stored.
struct Open<B> {
    /// The block for the machine, without fragments.
    block: Built<B>,
    /// Number of events that are not stored yet.
    left: usize,
    /// Events by outcome.
    ending: Events,
}

impl<B: Payload> Splitter<B> {
    /// The bundles of a plan; none if no readout unit makes any.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        let bundling = &plan.bundling;
        let read = |unit| bundling.read_by(unit).map(|source| (source, bundling.suppression(source).is_some()));
        let unit = |unit| Unit { bundles: bundling.bundles(unit), sources: read(unit).collect() };
        (!bundling.is_plain()).then(|| Self {
            units: (0..plan.building.readout_units).map(unit).collect(),
            first_phase: match plan.building.protocol {
                Protocol::Phased { first: First::Units(first), .. } if bundling.block > 1 => Some(first.into()),
                Protocol::Push | Protocol::Pull | Protocol::Phased { .. } => None,
            },
            filter: Filter { seed: plan.filter.seed, accept: plan.filter.drawn.unwrap_or(1.0) },
            open: HashMap::new(),
            ended: Events::default(),
            faults: BTreeMap::new(),
            bundling: bundling.clone(),
        })
    }

    /// Splits a block into its events; rejected ones are only counted. The block ends when
    /// [`stored`](Self::stored) has all of them, or at once if there are none: then it is given back, too.
    pub(crate) fn split(&mut self, mut block: Built<B>) -> (Vec<Built<B>>, Option<Built<B>>) {
        let ids = self.bundling.events_of(block.event);
        let mut events: Vec<_> =
            ids.map(|event| Built { event, complete: true, asked: Region::ALL, fragments: Vec::new() }).collect();
        let mut seen = Vec::new();
        for (index, bundle) in block.fragments.drain(..).enumerate() {
            if self.first_phase == Some(index) {
                seen = events.iter().map(|event| event.complete).collect();
            }
            self.deal(index, bundle, &mut events);
        }
        let all = events.len();
        if self.first_phase.is_some() {
            let mut seen = seen.into_iter();
            events.retain(|event| self.filter.accepts(event.event, seen.next().unwrap_or(false)));
        }
        let ending = ending(&events, all);
        for fragment in events.iter().flat_map(|event| event.fragments.iter().flatten()) {
            if let Some(fault) = fault(fragment.status) {
                count(&mut self.faults, fragment.source, fault, 1);
            }
        }
        block.complete = ending.incomplete == 0;
        let id = block.event;
        self.open.insert(id, Open { block, left: events.len(), ending });
        let ended = if events.is_empty() { self.end(id) } else { None };
        (events, ended)
    }

    /// Gives the bundle or fragment of a unit to the events.
    fn deal(&mut self, unit: usize, bundle: Option<Fragment<B>>, events: &mut [Built<B>]) {
        let Some(first) = events.first().map(|event| event.event) else { return };
        let Unit { bundles, sources } = &self.units[unit];
        match bundle.filter(|bundle| bundle.status != FragmentStatus::Missing) {
            None => give_all(events, sources, FragmentStatus::Missing, B::default(), 0),
            Some(fragment) if !bundles => {
                for (event, (source, _)) in events.iter_mut().zip(sources) {
                    give(event, Fragment { source: *source, ..fragment.clone() });
                }
            }
            Some(bundle) => match B::split(first, &bundle) {
                Ok(fragments) => {
                    for stranger in distribute(events, sources, fragments) {
                        count(&mut self.faults, stranger, Fault::Unexpected, 1);
                    }
                }
                // Nobody knows what the bytes are: they are kept as those of the first source.
                Err(_) => give_all(events, sources, FragmentStatus::Corrupted, bundle.payload, bundle.checksum),
            },
        }
    }

    /// Takes an event that is stored; gives back its block when that was the last one.
    pub(crate) fn stored(&mut self, event: &Built<B>) -> Option<Built<B>> {
        let block = self.bundling.block_of(event.event);
        let open = self.open.get_mut(&block)?;
        open.left -= 1;
        if open.left == 0 { self.end(block) } else { None }
    }

    /// Takes an event that is rejected; gives back its block when that was the last one.
    pub(crate) fn rejected(&mut self, event: &Built<B>) -> Option<Built<B>> {
        let open = self.open.get_mut(&self.bundling.block_of(event.event))?;
        let ending = &mut open.ending;
        *(if event.complete { &mut ending.built } else { &mut ending.incomplete }) -= 1;
        ending.rejected += 1;
        self.stored(event)
    }

    fn end(&mut self, block: EventId) -> Option<Built<B>> {
        let Open { block, ending, .. } = self.open.remove(&block)?;
        self.ended.built += ending.built;
        self.ended.incomplete += ending.incomplete;
        self.ended.rejected += ending.rejected;
        Some(block)
    }

    /// The decision on a block after its first phase: it is built if any of its events is accepted.
    pub(crate) fn decide(&mut self, block: EventId, complete: bool) -> bool {
        let accepted = self.bundling.events_of(block).any(|event| self.filter.accepts(event, complete));
        if !accepted {
            self.ended.rejected += u64::from(self.bundling.block);
        }
        accepted
    }

    /// Counts a bundle of a unit that came too late.
    pub(crate) fn count_late(&mut self, unit: u16) {
        for (source, _) in self.units.get(usize::from(unit)).iter().flat_map(|unit| &unit.sources) {
            count(&mut self.faults, *source, Fault::Late, self.bundling.block.into());
        }
    }

    /// Puts the counts by event and by source into a report, in place of those by bundle.
    pub(crate) fn report(&self, counts: &mut evb_record::Builder, faults: &mut Faults) -> BTreeMap<u16, Faults> {
        let Events { built, incomplete, rejected, .. } = self.ended;
        (counts.built, counts.incomplete, counts.rejected) = (built, incomplete, rejected);
        BY_SOURCE.iter().for_each(|fault| _ = faults.remove(fault.name()));
        let told = |fault: &Fault| BY_SOURCE.contains(fault) || *fault == Fault::Unexpected;
        for (fault, count) in self.faults.values().flatten().filter(|(fault, _)| told(fault)) {
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

/// The outcome of the events that were not rejected, and of those that were, out of `all`.
fn ending<B>(events: &[Built<B>], all: usize) -> Events {
    let built = events.iter().filter(|event| event.complete).count();
    let (incomplete, rejected) = (events.len() - built, all - events.len());
    Events { built: built as u64, incomplete: incomplete as u64, rejected: rejected as u64, ..Events::default() }
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

fn give<B>(event: &mut Built<B>, fragment: Fragment<B>) {
    event.complete &= fragment.status == FragmentStatus::Good;
    event.fragments.push(Some(Fragment { event: event.event, ..fragment }));
}

/// Gives each event a fragment of each source without data. The first one gets the payload.
fn give_all<B: Payload>(
    events: &mut [Built<B>],
    sources: &[(SourceId, bool)],
    status: FragmentStatus,
    payload: B,
    checksum: u32,
) {
    let mut rest = Some((payload, checksum));
    for event in events {
        for (source, _) in sources {
            let (payload, checksum) = rest.take().unwrap_or_default();
            let (event_id, source) = (event.event, *source);
            let fragment = Fragment { event: event_id, source, length: 0, checksum, mark: None, status, payload };
            let length = B::length(&fragment);
            give(event, Fragment { length, ..fragment });
        }
    }
}

/// Gives the fragments of a bundle to their events; the sources of those that belong to none are given back. A fragment
/// whose payload differs from its checksum is corrupted.
fn distribute<B: Payload>(
    events: &mut [Built<B>],
    sources: &[(SourceId, bool)],
    fragments: Vec<Fragment<B>>,
) -> Vec<SourceId> {
    let mut fragments = fragments.into_iter().peekable();
    for event in events {
        for (source, may_lack) in sources {
            let is_wanted = |fragment: &Fragment<B>| (fragment.event, fragment.source) == (event.event, *source);
            match fragments.next_if(is_wanted) {
                Some(fragment) => give(event, checked(fragment)),
                None if *may_lack => {}
                None => {
                    give_all(std::slice::from_mut(event), &[(*source, false)], FragmentStatus::Missing, B::default(), 0)
                }
            }
        }
    }
    fragments.map(|fragment| fragment.source).collect()
}

fn checked<B: Payload>(mut fragment: Fragment<B>) -> Fragment<B> {
    let found = B::checksum(&fragment);
    if found != fragment.checksum {
        // The file keeps the bytes as they are, and a checksum that fits them.
        fragment.checksum = found;
        fragment.status = FragmentStatus::Corrupted;
    }
    fragment
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
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
            status: FragmentStatus::Good,
            payload: Bytes::from_static(payload),
        }
    }

    /// The bundle of a unit for the events 3 and 4.
    fn bundle(unit: u16, fragments: &[Fragment<Bytes>]) -> Fragment<Bytes> {
        let (payload, length) = Bytes::bundle(EventId(3), fragments);
        Fragment { length, payload, ..fragment(2, unit, b"") }
    }

    fn all_of(unit: u16) -> Fragment<Bytes> {
        let places = [(3, 0), (3, 1), (4, 0), (4, 1)];
        bundle(unit, &places.map(|(event, source)| fragment(event, 2 * unit + source, b"ab")))
    }

    /// The outcome of block 2, whose events are stored at once, and the sources with their faults.
    fn outcome(bundles: [Option<Fragment<Bytes>>; 2]) -> (bool, evb_record::Builder, BTreeMap<u16, Faults>) {
        let mut splitter = splitter();
        let built = Built { event: EventId(2), complete: true, asked: Region::ALL, fragments: bundles.into() };
        let (events, ended) = splitter.split(built);
        assert!(ended.is_none() && events.iter().map(|event| event.event.0).eq([3, 4]));
        let sources = |event: &Built<Bytes>| event.fragments.iter().flatten().map(|one| one.source.0).eq(0..4);
        assert!(events.iter().all(sources));
        assert_eq!(splitter.stored(&events[0]), None);
        let block = splitter.stored(&events[1]).expect("the last event ends the block");
        let mut counts = evb_record::Builder::default();
        let faults = splitter.report(&mut counts, &mut Faults::new());
        (block.complete, counts, faults)
    }

    fn told(source: u16, fault: Fault, count: u64) -> (u16, Faults) {
        (source, [(fault.name().to_owned(), count)].into())
    }

    #[test]
    fn good_bundles_are_complete_events() {
        let (complete, counts, faults) = outcome([Some(all_of(0)), Some(all_of(1))]);
        assert_eq!((complete, counts.built, counts.incomplete, faults.len()), (true, 2, 0, 0));
    }

    #[test]
    fn one_bad_or_absent_fragment_spoils_its_event_alone() {
        let damaged = Fragment { payload: Bytes::from_static(b"aX"), ..fragment(3, 2, b"ab") };
        let rest = [damaged, fragment(3, 3, b"ab"), fragment(4, 2, b"ab"), fragment(4, 3, b"ab")];
        let (complete, counts, faults) = outcome([Some(all_of(0)), Some(bundle(1, &rest))]);
        assert_eq!((complete, counts.built, counts.incomplete), (false, 1, 1));
        assert_eq!(faults, [told(2, Fault::Corrupted, 1)].into());
        let (_, counts, faults) = outcome([Some(all_of(0)), Some(bundle(1, &rest[1..3]))]);
        assert_eq!((counts.built, counts.incomplete), (0, 2));
        assert_eq!(faults, [told(2, Fault::Missing, 1), told(3, Fault::Missing, 1)].into());
    }

    #[test]
    fn a_unit_without_a_bundle_or_with_a_broken_one_is_told_by_source() {
        let (_, counts, faults) = outcome([None, Some(all_of(1))]);
        assert_eq!((counts.built, counts.incomplete), (0, 2));
        assert_eq!(faults, [told(0, Fault::Missing, 2), told(1, Fault::Missing, 2)].into());
        let broken = fragment(2, 0, b"no bundle at all");
        let (_, _, faults) = outcome([Some(broken), Some(all_of(1))]);
        assert_eq!(faults, [told(0, Fault::Corrupted, 2), told(1, Fault::Corrupted, 2)].into());
    }
}
