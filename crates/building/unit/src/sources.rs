//! All sources of one readout unit: as one source of bundles, or as it is where there is only one.

use crate::{FragmentSource, Payload, blocks::Blocks, bundle::Bundle};
use evb_core::{EventId, NodeId, Recording, SourceId, stream};
use evb_experiment::{FaultAction, Plan};
use evb_protocol::{Arrival, BlockSize, Fault, Fragment, FragmentStatus};
use evb_sources::Feed;
use rand::Rng;

/// Purpose of the random streams of zero suppression.
const SUPPRESSION: u64 = 5;

/// The sources of one readout unit.
pub struct Sources<S> {
    members: Vec<Member<S>>,
    /// Fragments go in bundles.
    bundles: bool,
    blocks: Blocks,
    max_fragment: u32,
    seed: u64,
    /// Bytes of the largest bundle so far.
    largest: usize,
    /// Fragments that were read.
    count: u64,
}

/// A source that is read.
struct Member<S> {
    id: SourceId,
    source: S,
    /// The part of the events of which it has no fragment, if that is not a fault.
    suppressed: Option<f64>,
    /// Faults that are injected into its fragments.
    faults: Vec<FaultAction>,
}

impl<S> Sources<S> {
    /// Opens the sources of a readout unit that are read. Super-fragments of a first stage are those of one source, by
    /// the number of the readout unit.
    ///
    /// # Errors
    /// The first error of `open`.
    pub fn open<E>(plan: &Plan, unit: u16, mut open: impl FnMut(SourceId) -> Result<S, E>) -> Result<Self, E> {
        let bundling = &plan.bundling;
        let super_fragments = bundling.slice.map(|_| SourceId(unit));
        let read = bundling.read_by(unit).filter(|_| super_fragments.is_none());
        let member = |id: SourceId| {
            let faults = plan.faults.iter().filter(|fault| fault.source == Some(id)).map(|fault| fault.action);
            Ok(Member { id, source: open(id)?, suppressed: bundling.suppression(id), faults: faults.collect() })
        };
        Ok(Self {
            members: super_fragments.into_iter().chain(read).map(member).collect::<Result<_, E>>()?,
            bundles: super_fragments.is_none() && bundling.bundles(unit),
            blocks: Blocks::new(plan),
            max_fragment: u32::try_from(plan.max_fragment().0).unwrap_or(u32::MAX),
            seed: plan.run.seed,
            largest: 0,
            count: 0,
        })
    }

    /// Takes the number of events in a block, from a block on.
    pub(crate) fn change_blocks(&mut self, size: BlockSize) {
        self.blocks.change(size);
    }

    /// Number of events in the newest blocks.
    pub(crate) fn block_size(&self) -> u64 {
        self.blocks.size(EventId(u64::MAX))
    }

    /// Number of events in all blocks up to this one.
    pub(crate) fn events_through(&self, block: EventId) -> u64 {
        self.blocks.through(block)
    }

    /// The only source, whose fragments go unbundled, or `None` if there are bundles.
    pub fn only(&self) -> Option<&S> {
        self.members.first().filter(|_| !self.bundles).map(|member| &member.source)
    }

    /// The only source, to be changed.
    pub fn only_mut(&mut self) -> Option<&mut S> {
        self.members.first_mut().filter(|_| !self.bundles).map(|member| &mut member.source)
    }

    /// The extent of the source that goes furthest. One without an end does not prolong those with an end.
    pub fn feed<B>(&self) -> Feed
    where
        S: FragmentSource<B>,
    {
        if let Some(only) = self.only() {
            return only.feed();
        }
        let ends = self.members.iter().filter_map(|member| match member.source.feed() {
            Feed::Finite { events } => Some(self.blocks.block_of(EventId(events)).0),
            Feed::Endless | Feed::Live => None,
        });
        ends.max().map_or(Feed::Endless, |events| Feed::Finite { events })
    }

    /// What a recorded source says of its events, if it is the only one.
    pub fn recording<B>(&self) -> Option<Recording>
    where
        S: FragmentSource<B>,
    {
        self.only()?.recording()
    }

    /// Reads the fragment of an event, which the only source has at this position, or the bundle of a block.
    ///
    /// # Errors
    /// When a source is broken.
    #[inline]
    pub fn read<B: Payload>(&mut self, unit: SourceId, event: EventId, position: u64) -> Result<Fragment<B>, S::Error>
    where
        S: FragmentSource<B>,
    {
        self.count += self.fragments_of(event);
        match self.only_mut() {
            Some(only) => only.read(unit, event, position),
            None => self.bundle(unit, event),
        }
    }

    /// Number of fragments of an event, or in the bundle of a block.
    #[inline]
    fn fragments_of(&self, block: EventId) -> u64 {
        if self.bundles { self.members.len() as u64 * self.blocks.size(block) } else { 1 }
    }

    /// Number of fragments that were read.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Takes back a payload that is no longer needed.
    #[inline]
    pub fn release<B>(&mut self, payload: B)
    where
        S: FragmentSource<B>,
    {
        if let Some(member) = self.members.first_mut() {
            member.source.release(payload);
        }
    }

    /// Takes a fragment of a live source that belongs to no event.
    pub(crate) fn set_apart<B>(&mut self, arrival: Arrival<B>, reason: Fault)
    where
        S: FragmentSource<B>,
    {
        if let Some(member) = self.members.first_mut() {
            member.source.set_apart(arrival, reason);
        }
    }

    /// The bundle of a block, which is one event if there are no blocks.
    fn bundle<B: Payload>(&mut self, unit: SourceId, block: EventId) -> Result<Fragment<B>, S::Error>
    where
        S: FragmentSource<B>,
    {
        let events = self.blocks.events_of(block);
        let first = EventId(events.start);
        let fragments = self.fragments_of(block) as usize;
        let largest = self.largest;
        let bundle = self.members.first_mut().map(|member| member.source.begin_bundle(fragments, largest));
        let (mut good, mut filled) = (true, None);
        if let Some(mut bundle) = bundle {
            for event in events.map(EventId) {
                for member in &mut self.members {
                    good &= member.read_into(event, (self.seed, self.max_fragment), &mut bundle)?;
                }
            }
            filled = Some(bundle.finish(first));
        }
        let (payload, length, checksum) = filled.unwrap_or_else(|| B::bundle(first, &[]));
        self.largest = self.largest.max(length as usize);
        let status = if good { FragmentStatus::Good } else { FragmentStatus::Corrupted };
        let mut bundle =
            Fragment { event: block, source: unit, length, checksum, mark: None, counter: None, status, payload };
        if !good {
            bundle.checksum = B::checksum(&bundle);
        }
        Ok(bundle)
    }
}

impl<S> Member<S> {
    /// Reads the fragment of an event with its faults into a bundle; no fragment if the source is zero-suppressed and
    /// has none. Returns false if the fragment is not good, or does not match its checksum.
    fn read_into<B: Payload>(
        &mut self,
        event: EventId,
        (seed, most): (u64, u32),
        bundle: &mut S::Bundle,
    ) -> Result<bool, S::Error>
    where
        S: FragmentSource<B>,
    {
        if self.suppressed.is_some_and(|part| is_suppressed(seed, self.id, event, part)) {
            return Ok(true);
        }
        if !self.faults.is_empty() {
            return self.read_with_faults(event, most, bundle);
        }
        let status = self.source.read_into(self.id, event, bundle)?;
        if status == FragmentStatus::Missing && self.suppressed.is_some() {
            bundle.pop();
            return Ok(true);
        }
        Ok(status == FragmentStatus::Good)
    }

    /// Reads the fragment of an event into a bundle as the faults make it, as [`read_into`](Self::read_into) does
    /// without.
    fn read_with_faults<B: Payload>(
        &mut self,
        event: EventId,
        most: u32,
        bundle: &mut S::Bundle,
    ) -> Result<bool, S::Error>
    where
        S: FragmentSource<B>,
    {
        let mut fragment: Fragment<B> = self.source.read(self.id, event, event.0)?;
        if fragment.status == FragmentStatus::Missing && self.suppressed.is_some() {
            return Ok(true);
        }
        for action in &self.faults {
            match *action {
                FaultAction::Corrupt { one_in } if event.0.is_multiple_of(one_in) => B::corrupt(&mut fragment),
                FaultAction::Oversize { one_in } if event.0.is_multiple_of(one_in) => {
                    B::resize(&mut fragment, most);
                    fragment.status = FragmentStatus::Oversized;
                }
                FaultAction::Lose { one_in } if event.0.is_multiple_of(one_in) => {
                    B::resize(&mut fragment, 0);
                    fragment.status = FragmentStatus::Missing;
                }
                // The others happen to nodes, or to bundles on their way.
                FaultAction::Corrupt { .. }
                | FaultAction::Oversize { .. }
                | FaultAction::Lose { .. }
                | FaultAction::Kill { .. }
                | FaultAction::Duplicate { .. }
                | FaultAction::Delay { .. }
                | FaultAction::SlowDisk { .. } => {}
            }
        }
        bundle.push(&fragment);
        let good = fragment.status == FragmentStatus::Good && !self.corrupts(event);
        self.source.release(fragment.payload);
        Ok(good)
    }

    /// True if a fault changes the fragment of an event after its checksum was made.
    fn corrupts(&self, event: EventId) -> bool {
        let hits =
            |action: &FaultAction| matches!(action, FaultAction::Corrupt { one_in } if event.0.is_multiple_of(*one_in));
        self.faults.iter().any(hits)
    }
}

/// True if a source has no fragment of an event, by chance.
fn is_suppressed(seed: u64, source: SourceId, event: EventId, part: f64) -> bool {
    let mut stream = stream(seed ^ event.0.wrapping_mul(0x9e37_79b9_7f4a_7c15), NodeId(source.0), SUPPRESSION);
    // 53 bits are what a number in 0..1 can hold.
    ((stream.next_u64() >> 11) as f64) < part * (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_events_is_suppressed_and_sources_differ() {
        let suppressed = |source: u16, part| {
            let is_drawn = move |event: &u64| is_suppressed(7, SourceId(source), EventId(*event), part);
            (1..=10_000_u64).filter(is_drawn).collect::<Vec<_>>()
        };
        assert_eq!((suppressed(0, 0.0).len(), suppressed(0, 1.0).len()), (0, 10_000));
        // Five standard deviations of a binomial distribution.
        assert!(suppressed(3, 0.2).len().abs_diff(2000) < 200);
        assert_ne!(suppressed(3, 0.2), suppressed(4, 0.2));
    }
}
