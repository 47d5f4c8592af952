//! The payload of a fragment, as a driver has it: real bytes, or none.

use crate::bundle::{self, BundleError};
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
    /// Cuts off or adds to the payload, and makes its checksum fit.
    fn resize(fragment: &mut Fragment<Self>, length: u32);
    /// Spoils the payload after its checksum was made.
    fn corrupt(fragment: &mut Fragment<Self>);
    /// Puts fragments into one payload, and gives its length. `first` is the first event; the fragments are in the order
    /// of events, then of sources.
    fn bundle(first: EventId, fragments: &[Fragment<Self>]) -> (Self, u32);
    /// Splits a bundle into its fragments, whose checksums are not compared yet.
    ///
    /// # Errors
    /// The payload is no bundle, or a damaged one.
    fn split(first: EventId, bundle: &Fragment<Self>) -> Result<Vec<Fragment<Self>>, BundleError>;
}

/// The payload of a fragment without bytes: nothing, or the fragments of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline(Option<Arc<Vec<Fragment<Self>>>>);

impl Content for Outline {
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// Without bytes, length and status say everything.
impl Payload for Outline {
    #[inline]
    fn length(fragment: &Fragment<Self>) -> u32 {
        fragment.length
    }

    #[inline]
    fn checksum(fragment: &Fragment<Self>) -> u32 {
        fragment.checksum
    }

    fn resize(fragment: &mut Fragment<Self>, length: u32) {
        fragment.length = length;
    }

    fn corrupt(fragment: &mut Fragment<Self>) {
        fragment.status = FragmentStatus::Corrupted;
    }

    fn bundle(_first: EventId, fragments: &[Fragment<Self>]) -> (Self, u32) {
        let payload: usize = fragments.iter().map(|fragment| fragment.length as usize).sum();
        let length = bundle::index_bytes(fragments.len()) + payload;
        (Self(Some(Arc::new(fragments.to_vec()))), u32::try_from(length).unwrap_or(u32::MAX))
    }

    fn split(_first: EventId, bundle: &Fragment<Self>) -> Result<Vec<Fragment<Self>>, BundleError> {
        let Self(Some(fragments)) = &bundle.payload else { return Err(BundleError::NoIndex) };
        Ok(fragments.to_vec())
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

    fn bundle(first: EventId, fragments: &[Fragment<Self>]) -> (Self, u32) {
        let payload = bundle::encode(first, fragments);
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        (payload, length)
    }

    fn split(first: EventId, bundle: &Fragment<Self>) -> Result<Vec<Fragment<Self>>, BundleError> {
        bundle::decode(first, &bundle.payload)
    }
}
