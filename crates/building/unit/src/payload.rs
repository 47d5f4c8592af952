//! The payload of a fragment, as a driver has it: real bytes, or none.

use crate::bundle::{self, Bundle, BundleError, BundlePart, Writer};
use bytes::{Bytes, BytesMut};
use evb_core::EventId;
use evb_filter::Content;
use evb_protocol::{Fragment, FragmentStatus};
use std::sync::Arc;

/// A payload handle.
pub trait Payload: Clone + Default + Content {
    /// The length of the payload, which may be more than the fragment says.
    fn length(fragment: &Fragment<Self>) -> u32;
    /// The checksum of the payload as it is.
    fn checksum(fragment: &Fragment<Self>) -> u32;
    /// The checksum that the index of a bundle has of itself, which is that of a good bundle.
    fn index_checksum(fragment: &Fragment<Self>) -> u32;
    /// Cuts off or adds to the payload, and makes its checksum fit.
    fn resize(fragment: &mut Fragment<Self>, length: u32);
    /// Spoils the payload after its checksum was made.
    fn corrupt(fragment: &mut Fragment<Self>);
    /// The first event of a bundle by its own index, or `None` without one.
    fn first_event(bundle: &Fragment<Self>) -> Option<EventId>;
    /// Puts fragments into one payload, as [`Bundle`] does. `first` is the first event; the fragments are in the order
    /// of events, then of sources.
    fn bundle(first: EventId, fragments: &[Fragment<Self>]) -> (Self, u32, u32);
    /// Reads the index of a bundle into `parts`, without a look at the payloads.
    ///
    /// # Errors
    /// The payload is not a bundle, or a damaged one. Then `parts` has no meaning.
    fn parts(first: EventId, bundle: &Fragment<Self>, parts: &mut Vec<BundlePart>) -> Result<(), BundleError>;
    /// The fragment of a part, which shares the memory of the bundle.
    fn part(bundle: &Self, part: &BundlePart) -> Fragment<Self>;
    /// True if the payload of a part is as its checksum says.
    fn is_intact(bundle: &Self, part: &BundlePart) -> bool;
}

/// The payload of a fragment without bytes: nothing, or the fragments of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatedPayload(Option<Arc<Vec<Fragment<Self>>>>);

impl SimulatedPayload {
    /// Number of fragments in it: one, or those of a bundle.
    pub fn fragments(&self) -> usize {
        self.0.as_ref().map_or(1, |fragments| fragments.len())
    }
}

impl Content for SimulatedPayload {
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// Without bytes, length and status say everything.
impl Payload for SimulatedPayload {
    #[inline]
    fn length(fragment: &Fragment<Self>) -> u32 {
        fragment.length
    }

    #[inline]
    fn checksum(fragment: &Fragment<Self>) -> u32 {
        fragment.checksum
    }

    #[inline]
    fn index_checksum(fragment: &Fragment<Self>) -> u32 {
        fragment.checksum
    }

    fn resize(fragment: &mut Fragment<Self>, length: u32) {
        fragment.length = length;
    }

    fn corrupt(fragment: &mut Fragment<Self>) {
        fragment.status = FragmentStatus::Corrupted;
    }

    fn first_event(_bundle: &Fragment<Self>) -> Option<EventId> {
        None
    }

    fn bundle(first: EventId, fragments: &[Fragment<Self>]) -> (Self, u32, u32) {
        SimulatedBundle(fragments.to_vec()).finish(first)
    }

    fn parts(_first: EventId, bundle: &Fragment<Self>, parts: &mut Vec<BundlePart>) -> Result<(), BundleError> {
        let Self(Some(fragments)) = &bundle.payload else { return Err(BundleError::NoIndex) };
        parts.clear();
        parts.extend((0..).zip(&**fragments).map(|(at, fragment)| BundlePart { at, ..BundlePart::whole(fragment) }));
        Ok(())
    }

    fn part(bundle: &Self, part: &BundlePart) -> Fragment<Self> {
        let fragment = bundle.0.as_ref().and_then(|fragments| fragments.get(part.at as usize));
        part.with(fragment.map(|fragment| fragment.payload.clone()).unwrap_or_default())
    }

    fn is_intact(_bundle: &Self, _part: &BundlePart) -> bool {
        true
    }
}

/// A bundle without bytes that is being made.
#[derive(Debug, Default)]
pub struct SimulatedBundle(Vec<Fragment<SimulatedPayload>>);

impl SimulatedBundle {
    /// An empty bundle, with space for this many fragments.
    pub fn with_capacity(fragments: usize) -> Self {
        Self(Vec::with_capacity(fragments))
    }
}

impl Bundle<SimulatedPayload> for SimulatedBundle {
    fn push(&mut self, fragment: &Fragment<SimulatedPayload>) {
        self.0.push(fragment.clone());
    }

    fn pop(&mut self) {
        self.0.pop();
    }

    fn finish(self, _first: EventId) -> (SimulatedPayload, u32, u32) {
        let payload: usize = self.0.iter().map(|fragment| fragment.length as usize).sum();
        let length = bundle::index_bytes(self.0.len()) + payload;
        (SimulatedPayload(Some(Arc::new(self.0))), u32::try_from(length).unwrap_or(u32::MAX), 0)
    }
}

impl Payload for Bytes {
    #[inline]
    fn length(fragment: &Fragment<Self>) -> u32 {
        u32::try_from(fragment.payload.len()).unwrap_or(u32::MAX)
    }

    #[inline]
    fn checksum(fragment: &Fragment<Self>) -> u32 {
        evb_core::checksum(&fragment.payload)
    }

    /// The checksum of all bytes if there is no index.
    fn index_checksum(fragment: &Fragment<Self>) -> u32 {
        bundle::checksum_of_index(&fragment.payload).unwrap_or_else(|| Self::checksum(fragment))
    }

    fn resize(fragment: &mut Fragment<Self>, length: u32) {
        let mut payload = BytesMut::from(&fragment.payload[..]);
        payload.resize(length as usize, 0);
        fragment.length = length;
        fragment.payload = payload.freeze();
        fragment.checksum = evb_core::checksum(&fragment.payload);
    }

    /// Flips a bit; an empty payload has none.
    fn corrupt(fragment: &mut Fragment<Self>) {
        let mut payload = BytesMut::from(&fragment.payload[..]);
        if let Some(byte) = payload.first_mut() {
            *byte ^= 1;
        }
        fragment.payload = payload.freeze();
    }

    fn first_event(bundle: &Fragment<Self>) -> Option<EventId> {
        bundle::first_event(&bundle.payload)
    }

    fn bundle(first: EventId, fragments: &[Fragment<Self>]) -> (Self, u32, u32) {
        let bytes: usize = fragments.iter().map(|fragment| fragment.payload.len()).sum();
        let space = BytesMut::zeroed(bytes + bundle::index_bytes(fragments.len()));
        let mut writer = Writer::new(space, fragments.len());
        fragments.iter().for_each(|fragment| writer.push(fragment));
        writer.finish(first)
    }

    fn parts(first: EventId, bundle: &Fragment<Self>, parts: &mut Vec<BundlePart>) -> Result<(), BundleError> {
        bundle::read_index(first, &bundle.payload, parts)
    }

    fn part(bundle: &Self, part: &BundlePart) -> Fragment<Self> {
        part.with(bundle.slice(part.range()))
    }

    #[inline]
    fn is_intact(bundle: &Self, part: &BundlePart) -> bool {
        bundle.get(part.range()).is_some_and(|bytes| evb_core::checksum(bytes) == part.checksum)
    }
}
