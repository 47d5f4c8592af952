//! Fragments, pieces of them, and reports of fragments.

use super::{Body, Head, Layout, WireError};
use crate::{Fragment, Piece, Sighted};
use alloc::{boxed::Box, sync::Arc};
use evb_core::{Counter, EventId, FragmentStatus, Mark, SourceId};

/// Flags of [`Sighted`].
const DECLARED: u8 = 1;
const LAST: u8 = 2;

/// Flag of a piece: the first one of a fragment, with the counter in the second event.
const FIRST: u8 = 0x80;

impl<B> Fragment<B> {
    #[inline]
    fn from_head(head: &Head, payload: B) -> Result<Self, WireError> {
        Ok(Self {
            event: EventId(head.event.get()),
            source: SourceId(head.source.get()),
            length: head.length.get(),
            checksum: head.checksum.get(),
            mark: Mark::from_bits(head.mark.get()),
            counter: Counter::from_bits(head.second.get()),
            status: FragmentStatus::from_byte(head.flag).ok_or(head.bad_flag())?,
            payload,
        })
    }
}

impl<B> Layout<B> for Fragment<B> {
    #[inline]
    fn write(self, head: &mut Head) -> Body<B> {
        *head = Head {
            kind: head.kind,
            flag: self.status as u8,
            source: self.source.0.into(),
            length: self.length.into(),
            event: self.event.0.into(),
            checksum: self.checksum.into(),
            mark: Mark::to_bits(self.mark).into(),
            second: Counter::to_bits(self.counter).into(),
        };
        Body::Payload(self.payload)
    }

    #[inline]
    fn read(head: &Head, body: B) -> Result<Self, WireError>
    where
        B: AsRef<[u8]>,
    {
        let (length, actual) = (head.length.get(), body.as_ref().len());
        if length as usize != actual {
            return Err(WireError::WrongLength { kind: head.kind, announced: length.into(), actual });
        }
        Self::from_head(head, body)
    }

    #[inline]
    fn body_bytes(&self) -> u64 {
        self.length.into()
    }
}

impl<B> Layout<B> for Box<Piece<B>> {
    fn write(self, head: &mut Head) -> Body<B> {
        let is_first = self.offset == 0 && self.of.counter.is_some();
        let body = self.of.write(head);
        if is_first {
            head.flag |= FIRST;
        } else {
            head.second = u64::from(self.offset).into();
        }
        body
    }

    fn read(head: &Head, body: B) -> Result<Self, WireError>
    where
        B: AsRef<[u8]>,
    {
        let (length, actual) = (u64::from(head.length.get()), body.as_ref().len());
        let is_first = head.flag & FIRST != 0;
        let before = if is_first { 0 } else { head.second.get() };
        let offset = u32::try_from(before).ok().filter(|&offset| u64::from(offset) + actual as u64 <= length);
        let offset = offset.ok_or(WireError::WrongLength { kind: head.kind, announced: length, actual })?;
        let counter = if is_first { head.second } else { 0.into() };
        let head = Head { flag: head.flag & !FIRST, second: counter, ..*head };
        Ok(Self::new(Piece { offset, bytes: actual as u32, of: Fragment::from_head(&head, body)? }))
    }

    fn body_bytes(&self) -> u64 {
        self.bytes.into()
    }
}

/// The number is in the field of the event, the segment in that of the checksum, the bits in that of the source, the
/// distance to the last fragment in that of the mark. The second event is the last one before the segment.
impl<B> Layout<B> for Arc<Sighted> {
    fn write(self, head: &mut Head) -> Body<B> {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        head.flag = flag(self.declared, DECLARED) | flag(self.last, LAST);
        head.source = u16::from(self.bits).into();
        head.event = self.number.into();
        head.checksum = self.segment.into();
        head.second = self.after.0.into();
        head.mark = self.ahead.into();
        self.fragments.clone().write(head)
    }

    fn read(head: &Head, body: B) -> Result<Self, WireError>
    where
        B: AsRef<[u8]>,
    {
        if head.flag > DECLARED | LAST {
            return Err(head.bad_flag());
        }
        Ok(Self::new(Sighted {
            segment: head.checksum.get(),
            declared: head.flag & DECLARED != 0,
            last: head.flag & LAST != 0,
            bits: u8::try_from(head.source.get()).map_err(|_| head.bad_flag())?,
            after: EventId(head.second.get()),
            number: head.event.get(),
            ahead: head.mark.get(),
            fragments: Layout::read(head, body)?,
        }))
    }

    fn body_bytes(&self) -> u64 {
        Layout::<B>::body_bytes(&self.fragments)
    }
}
