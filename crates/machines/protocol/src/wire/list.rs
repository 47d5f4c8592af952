//! Lists in the body of a message.

use super::{Body, Head, Layout, WireError};
use crate::{Assigned, Completion, Ending};
use alloc::{sync::Arc, vec::Vec};
use evb_core::{EventId, Mark, NodeId, Sighting};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, little_endian as le};

/// An entry of a list.
pub(crate) trait Entry: Sized {
    /// The entry as it is on the wire.
    type Wire: FromBytes + IntoBytes + KnownLayout + Immutable;

    /// The entry as it is on the wire.
    fn to_wire(&self) -> Self::Wire;

    /// Reads a list.
    ///
    /// # Errors
    /// The first byte that has no meaning.
    fn from_wire(list: &[Self::Wire]) -> Result<Arc<[Self]>, u8>;
}

impl<T: Entry, B> Layout<B> for Arc<[T]> {
    fn write(self, head: &mut Head) -> Body<B> {
        head.length = (self.len() as u32).into();
        let mut bytes = Vec::with_capacity(size_of_val(&*self));
        for entry in &*self {
            bytes.extend_from_slice(entry.to_wire().as_bytes());
        }
        Body::List(bytes)
    }

    fn read(head: &Head, body: B) -> Result<Self, WireError>
    where
        B: AsRef<[u8]>,
    {
        let bytes = body.as_ref();
        let announced = u64::from(head.length.get()) * size_of::<T::Wire>() as u64;
        let wrong = WireError::WrongLength { kind: head.kind, announced, actual: bytes.len() };
        if bytes.len() as u64 != announced {
            return Err(wrong);
        }
        let list = <[T::Wire]>::ref_from_bytes(bytes).map_err(|_| wrong)?;
        T::from_wire(list).map_err(|flag| WireError::BadFlag { kind: head.kind, flag })
    }

    fn body_bytes(&self) -> u64 {
        (self.len() * size_of::<T::Wire>()) as u64
    }
}

impl Entry for EventId {
    type Wire = le::U64;

    fn to_wire(&self) -> le::U64 {
        self.0.into()
    }

    fn from_wire(list: &[le::U64]) -> Result<Arc<[Self]>, u8> {
        Ok(list.iter().map(|event| Self(event.get())).collect())
    }
}

/// An event, or a position, and a mark.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct MarkEntry {
    event: le::U64,
    mark: le::U32,
}

impl Entry for (EventId, Mark) {
    type Wire = MarkEntry;

    fn to_wire(&self) -> MarkEntry {
        MarkEntry { event: self.0.0.into(), mark: Mark::to_bits(Some(self.1)).into() }
    }

    fn from_wire(list: &[MarkEntry]) -> Result<Arc<[Self]>, u8> {
        let mark = |entry: &MarkEntry| Some((EventId(entry.event.get()), Mark::from_bits(entry.mark.get())?));
        list.iter().map(mark).collect::<Option<_>>().ok_or(0)
    }
}

impl Entry for Sighting {
    type Wire = MarkEntry;

    fn to_wire(&self) -> MarkEntry {
        MarkEntry { event: self.position.into(), mark: Mark::to_bits(self.mark).into() }
    }

    fn from_wire(list: &[MarkEntry]) -> Result<Arc<[Self]>, u8> {
        let sighting =
            |entry: &MarkEntry| Self { position: entry.event.get(), mark: Mark::from_bits(entry.mark.get()) };
        Ok(list.iter().map(sighting).collect())
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct AssignedEntry {
    event: le::U64,
    builder: le::U16,
}

impl Entry for Assigned {
    type Wire = AssignedEntry;

    fn to_wire(&self) -> AssignedEntry {
        AssignedEntry { event: self.event.0.into(), builder: self.builder.0.into() }
    }

    fn from_wire(list: &[AssignedEntry]) -> Result<Arc<[Self]>, u8> {
        let assigned =
            |entry: &AssignedEntry| Self { event: EventId(entry.event.get()), builder: NodeId(entry.builder.get()) };
        Ok(list.iter().map(assigned).collect())
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct CompletionEntry {
    event: le::U64,
    ending: u8,
}

impl Entry for Completion {
    type Wire = CompletionEntry;

    fn to_wire(&self) -> CompletionEntry {
        CompletionEntry { event: self.event.0.into(), ending: self.ending as u8 }
    }

    fn from_wire(list: &[CompletionEntry]) -> Result<Arc<[Self]>, u8> {
        let completion = |entry: &CompletionEntry| {
            let ending = match entry.ending {
                0 => Ending::Incomplete,
                1 => Ending::Complete,
                2 => Ending::Rejected,
                flag => return Err(flag),
            };
            Ok(Self { event: EventId(entry.event.get()), ending })
        };
        list.iter().map(completion).collect()
    }
}
