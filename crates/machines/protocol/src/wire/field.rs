//! Values in the head of a message.

use crate::BlockSize;
use evb_core::{EventId, NodeId, Time};
use zerocopy::little_endian as le;

/// A value of a message that fits into a field of the head, or into several.
pub(crate) trait Field<Place>: Sized {
    /// The value as it is in the head.
    fn to_wire(self) -> Place;

    /// Reads the value, or returns `None` if the flag has no meaning.
    fn from_wire(place: Place) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty: $place:ty = $wrap:expr, $unwrap:expr;)+) => {$(
        impl Field<$place> for $type {
            #[inline]
            fn to_wire(self) -> $place {
                $unwrap(self).into()
            }

            #[inline]
            fn from_wire(place: $place) -> Option<Self> {
                Some($wrap(place.get()))
            }
        }
    )+};
}

numbers! {
    NodeId: le::U16 = NodeId, |node: Self| node.0;
    u32: le::U32 = |number| number, |number| number;
    u64: le::U64 = |number| number, |number| number;
    EventId: le::U64 = EventId, |event: Self| event.0;
    Time: le::U64 = Time, |time: Self| time.0;
}

impl Field<u8> for bool {
    #[inline]
    fn to_wire(self) -> u8 {
        self.into()
    }

    #[inline]
    fn from_wire(flag: u8) -> Option<Self> {
        match flag {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// The flag says whether there is a value.
impl Field<(u8, le::U64)> for Option<i64> {
    fn to_wire(self) -> (u8, le::U64) {
        (self.is_some().into(), (self.unwrap_or(0) as u64).into())
    }

    fn from_wire((flag, value): (u8, le::U64)) -> Option<Self> {
        bool::from_wire(flag).map(|is_some| is_some.then_some(value.get() as i64))
    }
}

impl Field<(le::U64, le::U64, le::U32)> for BlockSize {
    fn to_wire(self) -> (le::U64, le::U64, le::U32) {
        (self.from.to_wire(), self.first.to_wire(), self.events.to_wire())
    }

    fn from_wire((from, first, events): (le::U64, le::U64, le::U32)) -> Option<Self> {
        Some(Self { from: EventId(from.get()), first: EventId(first.get()), events: events.get() })
    }
}
