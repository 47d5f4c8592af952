//! The memory that joins two endpoints: the offer to the other side, and the other side's offer.

use super::{
    greeting::{Greeting, OFFERED},
    lane::{CONTROL_WORDS, Producer, first_position},
    link::CREDIT_WORDS,
    map::{Region, Words, close_to_writers, create},
};
use evb_core::NodeId;
use std::{io, os::fd::OwnedFd, sync::Arc};

/// Range of rings that a peer may offer, in bytes.
pub(super) const RING_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=1 << 30;
/// Words of the page on which an endpoint sleeps.
pub(super) const BELL_WORDS: usize = 512;

/// Memory that this side creates for one peer.
pub(super) struct Offer {
    pub(super) lane_file: OwnedFd,
    pub(super) lane: Words,
    pub(super) credit_file: OwnedFd,
    pub(super) credit: Words,
}

impl Offer {
    pub(super) fn new(ring_bytes: usize) -> io::Result<Self> {
        let lane_words = CONTROL_WORDS + ring_bytes / 8;
        let lane_file = create("evb lane", lane_words * 8)?;
        let lane = Words::map(&lane_file, lane_words, false)?;
        let credit_file = create("evb credit", CREDIT_WORDS * 8)?;
        let credit = Words::map(&credit_file, CREDIT_WORDS, true)?;
        close_to_writers(&credit_file)?;
        Ok(Self { lane_file, lane, credit_file, credit })
    }
}

/// Mapped memory of a peer's offer.
pub(super) struct AcceptedOffer {
    pub(super) outgoing: Producer<Words>,
    pub(super) room: Words,
    pub(super) bell: Words,
    pub(super) pool: Arc<Region>,
    pub(super) ring_bytes: usize,
}

impl AcceptedOffer {
    pub(super) fn new(local: NodeId, theirs: &Greeting, descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let bad = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let [lane, credit, bell, pool] =
            <[OwnedFd; OFFERED]>::try_from(descriptors).map_err(|_| bad("an offer without its memory"))?;
        let ring_bytes = theirs.ring_bytes as usize;
        if !ring_bytes.is_power_of_two() || !RING_BYTES.contains(&ring_bytes) {
            return Err(bad("a ring of a size that cannot be"));
        }
        let words = Words::map(&lane, CONTROL_WORDS + ring_bytes / 8, true)?;
        Ok(Self {
            outgoing: Producer::new(words, first_position(local.0, ring_bytes / 8)),
            room: Words::map(&credit, CREDIT_WORDS, false)?,
            bell: Words::map(&bell, BELL_WORDS, false)?,
            pool: Region::map(&pool, theirs.pool_bytes as usize, false)?,
            ring_bytes,
        })
    }
}
