//! Times of fragments, and what becomes of them.

use super::{Body, Head, Layout, WireError, list::Entry};
use crate::{Settled, Times};
use alloc::sync::Arc;
use evb_coincidence::Outcome;
use evb_core::EventId;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, little_endian as le};

/// Flags of [`Times`].
const FULL: u8 = 1;
const LAST: u8 = 2;
const FRONTIER: u8 = 4;

/// The first serial number is in the field of the event, the frontier in that of the second event.
impl<B> Layout<B> for Arc<Times> {
    fn write(self, head: &mut Head) -> Body<B> {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        head.flag = flag(self.full, FULL) | flag(self.last, LAST) | flag(self.frontier.is_some(), FRONTIER);
        head.event = self.first.into();
        head.second = self.frontier.unwrap_or(0).into();
        self.ticks.clone().write(head)
    }

    fn read(head: &Head, body: B) -> Result<Self, WireError>
    where
        B: AsRef<[u8]>,
    {
        if head.flag > FULL | LAST | FRONTIER {
            return Err(head.bad_flag());
        }
        Ok(Self::new(Times {
            first: head.event.get(),
            ticks: Layout::read(head, body)?,
            frontier: (head.flag & FRONTIER != 0).then_some(head.second.get()),
            full: head.flag & FULL != 0,
            last: head.flag & LAST != 0,
        }))
    }

    fn body_bytes(&self) -> u64 {
        Layout::<B>::body_bytes(&self.ticks)
    }
}

impl Entry for u64 {
    type Wire = le::U64;

    fn to_wire(&self) -> le::U64 {
        (*self).into()
    }

    fn from_wire(list: &[le::U64]) -> Result<Arc<[Self]>, u8> {
        Ok(list.iter().map(|ticks| ticks.get()).collect())
    }
}

/// A serial number, and the event or the reason why there is none.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct SettledEntry {
    serial: le::U64,
    event: le::U64,
    outcome: u8,
}

impl Entry for Settled {
    type Wire = SettledEntry;

    fn to_wire(&self) -> SettledEntry {
        let (outcome, event) = match self.outcome {
            Outcome::Event(event) => (0, event.0),
            Outcome::Alone => (1, 0),
            Outcome::Ambiguous => (2, 0),
            Outcome::OutOfWindow => (3, 0),
            Outcome::Late => (4, 0),
            Outcome::NotSynchronised => (5, 0),
        };
        SettledEntry { serial: self.serial.into(), event: event.into(), outcome }
    }

    fn from_wire(list: &[SettledEntry]) -> Result<Arc<[Self]>, u8> {
        let settled = |entry: &SettledEntry| {
            let outcome = match entry.outcome {
                0 => Outcome::Event(EventId(entry.event.get())),
                1 => Outcome::Alone,
                2 => Outcome::Ambiguous,
                3 => Outcome::OutOfWindow,
                4 => Outcome::Late,
                5 => Outcome::NotSynchronised,
                flag => return Err(flag),
            };
            Ok(Self { serial: entry.serial.get(), outcome })
        };
        list.iter().map(settled).collect()
    }
}
