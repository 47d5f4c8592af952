//! The payload of a fragment, as a driver has it: real bytes, or none.

use bytes::{Bytes, BytesMut};
use evb_filter::Content;
use evb_protocol::{Fragment, FragmentStatus};

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
}

/// Without bytes, length and status say everything.
impl Payload for () {
    #[inline]
    fn length(fragment: &Fragment<()>) -> u32 {
        fragment.length
    }

    #[inline]
    fn checksum(fragment: &Fragment<()>) -> u32 {
        fragment.checksum
    }

    fn resize(fragment: &mut Fragment<()>, length: u32) {
        fragment.length = length;
    }

    fn corrupt(fragment: &mut Fragment<()>) {
        fragment.status = FragmentStatus::Corrupted;
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
}
