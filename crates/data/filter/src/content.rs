//! The bytes of a fragment, as a filter sees them.

use bytes::Bytes;

/// The handle of a payload, as far as a filter needs it.
pub trait Content {
    /// The bytes; none where a driver carries lengths only.
    fn bytes(&self) -> Option<&[u8]>;
}

impl Content for () {
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

impl Content for Bytes {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}
