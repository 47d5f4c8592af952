//! Traversal from record to record: recognises heads, skips damage, checks payloads.

use crate::{
    Event, EventInfo, Found, Fragment, LostRange, Reader,
    layout::{
        ALIGNMENT, EVENT_HEADER_BYTES, EVENT_MAGIC, EventHeader, FragmentHeader, FragmentIdentity, INDEX_MAGIC,
        decode_trailer, padded,
    },
};
use bytes::{Bytes, BytesMut};
use evb_core::SourceId;
use std::io::{self, Read, Seek};

/// An event's head that was verified.
pub(crate) struct Head {
    pub(crate) event: EventInfo,
    pub(crate) complete: bool,
    /// Offset of the record.
    pub(crate) offset: u64,
    /// Offset of the payloads.
    pub(crate) payload_offset: u64,
    /// Bytes of the payloads, padding included.
    payload_bytes: u64,
    /// Bytes of the record.
    pub(crate) length: u64,
    pub(crate) fragments: Vec<(FragmentHeader, FragmentIdentity)>,
}

/// One step through a file.
pub(crate) enum Step {
    Event(Head),
    Lost(LostRange),
}

impl Step {
    /// Offset of the next step.
    pub(crate) fn end(&self) -> u64 {
        match self {
            Self::Event(head) => head.offset + head.length,
            Self::Lost(range) => range.offset + range.length,
        }
    }
}

impl<R: Read + Seek> Reader<R> {
    /// The item at `offset`; `None` at the end of the events.
    pub(crate) fn step(&mut self, offset: u64) -> io::Result<Option<Step>> {
        if offset >= self.end || self.ends_at(offset)? {
            return Ok(None);
        }
        if let Some(head) = self.head_at(offset)? {
            return Ok(Some(Step::Event(head)));
        }
        let next = self.next_block(offset + ALIGNMENT, self.end)?;
        let end = next.unwrap_or(self.end);
        let events = self.index.as_ref().map(|index| index.between(offset, end)).unwrap_or_default();
        let tail = next.is_none() && !self.has_footer;
        Ok(Some(Step::Lost(LostRange { offset, length: end - offset, events, tail })))
    }

    /// The first offset in `from..to` where an event begins, or the index of a file without a footer.
    pub(crate) fn next_block(&mut self, mut from: u64, to: u64) -> io::Result<Option<u64>> {
        while let Some(offset) = self.input.search(from, to, &[EVENT_MAGIC, INDEX_MAGIC])? {
            if self.head_at(offset)?.is_some() || self.ends_at(offset)? {
                return Ok(Some(offset));
            }
            from = offset + ALIGNMENT;
        }
        Ok(None)
    }

    /// The head and the trailer of the event at `offset`, if it is one of this file, they are undamaged, and its record
    /// fits into the file.
    pub(crate) fn head_at(&mut self, offset: u64) -> io::Result<Option<Head>> {
        let Some(start) = self.input.array_at::<EVENT_HEADER_BYTES>(offset)? else { return Ok(None) };
        let Some(header) = EventHeader::decode(&start) else { return Ok(None) };
        if self.tag.is_some_and(|tag| tag != header.tag) || header.length > self.end.saturating_sub(offset) {
            return Ok(None);
        }
        let mut bytes = vec![0; header.head_bytes()];
        self.input.read_at(offset, &mut bytes)?;
        if !header.matches(&bytes) {
            return Ok(None);
        }
        let Some(fragments) = header.fragments(&bytes) else { return Ok(None) };
        let payload_bytes = fragments.iter().map(|fragment| padded(u64::from(fragment.length))).sum();
        let Some(trailer_bytes) = header.trailer_bytes(payload_bytes) else { return Ok(None) };
        let payload_offset = offset + bytes.len() as u64;
        let trailer = self.trailer_at(payload_offset + payload_bytes, trailer_bytes, &header)?;
        let Some((event, identities)) = trailer else { return Ok(None) };
        self.tag = Some(header.tag);
        let fragments = fragments.into_iter().zip(identities).collect();
        let (complete, length) = (header.complete, header.length);
        Ok(Some(Head { event, complete, offset, payload_offset, payload_bytes, length, fragments }))
    }

    /// Times and identities of the event with this header: from the trailer at `offset`, or none in version 1, without
    /// trailer.
    fn trailer_at(
        &mut self,
        offset: u64,
        length: usize,
        header: &EventHeader,
    ) -> io::Result<Option<(EventInfo, Vec<FragmentIdentity>)>> {
        if length == 0 {
            return Ok(Some((header.id.into(), vec![FragmentIdentity::default(); header.fragments as usize])));
        }
        let mut bytes = vec![0; length];
        self.input.read_at(offset, &mut bytes)?;
        let decoded = decode_trailer(header.id, header.checksum, &bytes);
        Ok(decoded.map(|(event, identities)| (event, identities.collect())))
    }

    /// Reads and checks the payloads.
    pub(crate) fn read_payload(&mut self, head: Head) -> io::Result<Found> {
        let mut payload = BytesMut::zeroed(head.payload_bytes as usize);
        self.input.read_at(head.payload_offset, &mut payload)?;
        let mut payload = payload.freeze();
        let (mut fragments, mut sources) = (Vec::with_capacity(head.fragments.len()), Vec::new());
        for (header, identity) in &head.fragments {
            let (fragment, intact) = split_fragment(header, identity, &mut payload);
            if !intact {
                sources.push(header.source);
            }
            fragments.push(fragment);
        }
        let EventInfo { id, triggered, source_time } = head.event;
        let (complete, offset, payload_offset) = (head.complete, head.offset, head.payload_offset);
        let event = Event { id, triggered, source_time, complete, offset, payload_offset, fragments };
        Ok(found(event, sources))
    }

    /// Returns true if the index begins at `offset` of a file whose footer is missing or damaged.
    fn ends_at(&mut self, offset: u64) -> io::Result<bool> {
        Ok(!self.has_footer && self.index_header_at(offset)?.is_some())
    }
}

fn found(event: Event, sources: Vec<SourceId>) -> Found {
    if sources.is_empty() { Found::Event(event) } else { Found::Damaged { event, sources } }
}

/// Takes one fragment off the front of `payload`; the flag is true if bytes and padding are intact.
fn split_fragment(header: &FragmentHeader, identity: &FragmentIdentity, payload: &mut Bytes) -> (Fragment, bool) {
    let mut bytes = payload.split_to(padded(u64::from(header.length)) as usize);
    let padding = bytes.split_off(header.length as usize);
    let intact = crate::checksum(&bytes) == header.stored_checksum && padding.iter().all(|&byte| byte == 0);
    let FragmentHeader { source, status, checksum, .. } = *header;
    let FragmentIdentity { counter, mark, apart } = *identity;
    (Fragment { source, status, checksum, counter, mark, apart, bytes }, intact)
}
