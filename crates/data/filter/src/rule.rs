//! The built-in filters. Each decides by the event alone, so all builders and drivers decide alike.

use crate::Content;
use evb_core::{ByteCount, EventId, SourceId};
use evb_protocol::{Filter, Fragment};
use serde::{Deserialize, Serialize};

/// Step between the seeds of two draws of one chain. Odd, so that no two draws of a chain share a seed.
const NEXT_DRAW: u64 = 0xd1b5_4a32_d192_ed03;

/// A built-in filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Rule {
    /// Accepts events whose number is a multiple of this.
    Prescale {
        /// One in this many, at least 1.
        one_in: u64,
    },
    /// Accepts by the payload of a fragment, or of all fragments together.
    Size {
        /// The fragment; none for the whole event.
        source: Option<SourceId>,
        /// Smallest accepted payload.
        at_least: Option<ByteCount>,
        /// Largest accepted payload.
        at_most: Option<ByteCount>,
    },
    /// Accepts by a word in a fragment: little-endian, and equal to `value` in the bits of `mask`.
    Word {
        /// The fragment.
        source: SourceId,
        /// Width of the word.
        width: Width,
        /// The bits that are compared.
        mask: u64,
        /// Their value.
        value: u64,
        /// Offset of the word in bytes; none for any multiple of its width.
        at: Option<u64>,
    },
    /// Accepts events whose fragments are all there and good.
    Complete,
    /// Accepts a part of the events, drawn by seed and event.
    Random {
        /// The part, from 0 to 1.
        accept: f64,
    },
}

/// Width of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// 8 bits.
    Bits8,
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

impl Width {
    /// Number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bits8 => 1,
            Self::Bits16 => 2,
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

impl Rule {
    /// True if the filter reads bytes of fragments, so that lengths are not enough.
    pub const fn reads_bytes(&self) -> bool {
        match self {
            Self::Word { .. } => true,
            Self::Prescale { .. } | Self::Size { .. } | Self::Complete | Self::Random { .. } => false,
        }
    }

    /// True if the filter accepts a complete event. `seed` and `place` in the chain select the random draw. An event
    /// without the fragment or the word in question is not accepted.
    pub(crate) fn accepts<B: Content>(
        &self,
        (seed, place): (u64, usize),
        event: EventId,
        fragments: &[Option<Fragment<B>>],
    ) -> bool {
        if let Some(accepted) = self.accepts_unseen((seed, place), event) {
            return accepted;
        }
        match self {
            Self::Size { source, at_least, at_most } => {
                let size = size(fragments, *source);
                at_least.is_none_or(|least| size >= least.0) && at_most.is_none_or(|most| size <= most.0)
            }
            Self::Word { source, width, mask, value, at } => {
                let bytes = of_source(fragments, *source).and_then(|fragment| fragment.payload.bytes());
                bytes.is_some_and(|bytes| has_word(bytes, *width, *mask, *value, *at))
            }
            Self::Prescale { .. } | Self::Complete | Self::Random { .. } => true,
        }
    }

    /// The decision of [`accepts`](Self::accepts), if it needs no fragment.
    pub(crate) fn accepts_unseen(&self, (seed, place): (u64, usize), event: EventId) -> Option<bool> {
        match self {
            Self::Prescale { one_in } => Some(event.0.is_multiple_of(*one_in)),
            Self::Complete => Some(true),
            Self::Random { accept } => Some(draw(seed, place, *accept, event)),
            Self::Size { .. } | Self::Word { .. } => None,
        }
    }
}

/// The draw at a place of a chain. At the first place it is the draw of [`Filter`] with the seed of the run.
pub(crate) fn draw(seed: u64, place: usize, accept: f64, event: EventId) -> bool {
    Filter { seed: seed.wrapping_add((place as u64).wrapping_mul(NEXT_DRAW)), accept }.accepts(event, true)
}

fn of_source<B>(fragments: &[Option<Fragment<B>>], source: SourceId) -> Option<&Fragment<B>> {
    fragments.iter().flatten().find(|fragment| fragment.source == source)
}

fn size<B>(fragments: &[Option<Fragment<B>>], source: Option<SourceId>) -> u64 {
    let wanted = |fragment: &&Fragment<B>| source.is_none_or(|source| fragment.source == source);
    fragments.iter().flatten().filter(wanted).map(|fragment| u64::from(fragment.length)).sum()
}

fn has_word(bytes: &[u8], width: Width, mask: u64, value: u64, at: Option<u64>) -> bool {
    let is_such = |word: &[u8]| {
        let mut wide = [0; 8];
        wide[..word.len()].copy_from_slice(word);
        u64::from_le_bytes(wide) & mask == value & mask
    };
    match at {
        None => bytes.chunks_exact(width.bytes()).any(is_such),
        Some(at) => {
            let at = usize::try_from(at).ok();
            at.and_then(|at| bytes.get(at..)?.get(..width.bytes())).is_some_and(is_such)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use evb_protocol::FragmentStatus;

    fn fragment(source: u16, payload: &'static [u8]) -> Option<Fragment<Bytes>> {
        Some(Fragment {
            event: EventId(6),
            source: SourceId(source),
            status: FragmentStatus::Good,
            mark: None,
            counter: None,
            length: payload.len() as u32,
            checksum: 0,
            payload: Bytes::from_static(payload),
        })
    }

    fn accepts(rule: &Rule) -> bool {
        let fragments = [fragment(0, b"abcdefgh"), fragment(1, &[1, 2, 0x34, 0x12, 9])];
        rule.accepts((1, 0), EventId(6), &fragments)
    }

    #[test]
    fn a_prescale_goes_by_the_number() {
        assert!([1, 2, 3, 6].iter().all(|&one_in| accepts(&Rule::Prescale { one_in })));
        assert!(!accepts(&Rule::Prescale { one_in: 4 }));
    }

    #[test]
    fn sizes_are_of_a_fragment_or_of_all_and_bounds_belong_to_them() {
        let size = |source: Option<u16>, least: Option<u64>, most: Option<u64>| {
            let (source, at_least, at_most) = (source.map(SourceId), least.map(ByteCount), most.map(ByteCount));
            accepts(&Rule::Size { source, at_least, at_most })
        };
        assert!(size(None, Some(13), Some(13)) && !size(None, Some(14), None) && !size(None, None, Some(12)));
        assert!(size(Some(1), Some(5), Some(5)) && !size(Some(1), Some(6), None) && !size(Some(1), None, Some(4)));
        assert!(!size(Some(7), Some(1), None), "a source that is not there has no bytes");
    }

    #[test]
    fn words_are_little_endian_at_a_place_or_at_any_multiple_of_their_width() {
        let word = |width, mask, value, at| accepts(&Rule::Word { source: SourceId(1), width, mask, value, at });
        assert!(word(Width::Bits16, 0xffff, 0x1234, Some(2)) && word(Width::Bits16, 0xffff, 0x1234, None));
        assert!(word(Width::Bits16, 0x00ff, 0x5534, Some(2)), "bits outside of the mask do not count");
        assert!(!word(Width::Bits16, 0xffff, 0x1234, Some(1)) && !word(Width::Bits16, 0xffff, 0x3402, None));
        assert!(word(Width::Bits8, 0xff, 9, Some(4)) && word(Width::Bits8, 0xff, 9, None));
        assert!(!word(Width::Bits8, 0, 0, Some(5)) && !word(Width::Bits64, 0, 0, None), "it would end outside");
        assert!(!word(Width::Bits32, 0, 0, Some(u64::MAX)));
    }

    #[test]
    fn the_first_draw_is_that_of_phased_building_and_others_are_independent() {
        let both = |one: usize, other: usize| {
            let drawn = |place, event| draw(7, place, 0.5, EventId(event));
            (1..=10_000).filter(|&event| drawn(one, event) && drawn(other, event)).count()
        };
        let filter = Filter { seed: 7, accept: 0.5 };
        assert!((1..1000).all(|event| draw(7, 0, 0.5, EventId(event)) == filter.accepts(EventId(event), true)));
        assert!(both(0, 1).abs_diff(2500) < 250 && both(1, 2).abs_diff(2500) < 250);
    }
}
