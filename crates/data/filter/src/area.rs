//! The area of memory in which a filter unit reads its events: a builder writes them once, and the process reads them
//! where they are. `docs/reference/filter-wire.md` has the protocol for authors of programs.
//!
//! # Invariant
//! One mapping can write to an area, that of its builder, and the file is closed to all others before a process gets it.
//! A builder writes events only when the process has given a verdict about each of the last ones, or has
//! ended. A program uses the bytes of an event only before it gives the verdict about it. So bytes that are
//! being read are never written. A process that breaks this reads other bytes and harms only itself.

#![allow(unsafe_code, reason = "writes and reads memory that a builder shares with a filter unit")]

use crate::wire::{HELLO_FIXED, event_length, largest_event, write_event};
use bytes::Bytes;
use evb_os::memory::{Region, close_to_writers, create};
use evb_protocol::Built;
use rustix::fs::fstat;
use std::{
    fs::File,
    io,
    ops::Range,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

/// Offset of the first event. An area begins with the fixed part of the hello to its process, and zeros.
const FIRST: usize = 64;
/// Events begin at a multiple of this many bytes: a line of the cache.
const ALIGNMENT: usize = 64;

/// Bytes that an event takes in an area.
pub(crate) fn room_of(event: &Built<Bytes>) -> usize {
    event_length(event).next_multiple_of(ALIGNMENT)
}

/// Largest number of bytes of an event with this number and size of fragments in an area.
pub(crate) const fn largest_room(fragments: u64, size: u64) -> u64 {
    largest_event(fragments, size).saturating_add(ALIGNMENT as u64 - 1)
}

/// Size of an area with room for these bytes of events.
pub(crate) const fn size_for(events: u64) -> u64 {
    events.saturating_add(FIRST as u64)
}

/// The area of a filter unit, as its builder has it.
#[derive(Debug)]
pub(crate) struct Area {
    file: OwnedFd,
    region: Arc<Region>,
}

impl Area {
    /// A new area. It has no name, and goes with the last process that has it.
    ///
    /// # Errors
    /// The system does not give it.
    pub(crate) fn create(bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let file = create("evb-filter", bytes)?;
        let region = Region::map(&file, bytes, true)?;
        close_to_writers(&file)?;
        Ok(Self { file, region })
    }

    /// The file, which a process can map to read it.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Number of the file's descriptor.
    pub(crate) fn descriptor(&self) -> u32 {
        self.file.as_raw_fd() as u32
    }

    /// Writes the beginning, by which a process knows the area.
    pub(crate) fn mark(&mut self, hello: &[u8; HELLO_FIXED]) {
        self.range(0..HELLO_FIXED).copy_from_slice(hello);
    }

    /// Writes events over the last ones, and returns the place of each; `None` if they are too large together. The process
    /// has no event when this is called.
    pub(crate) fn write<'a>(&mut self, events: impl Iterator<Item = &'a Built<Bytes>>) -> Option<Vec<Range<usize>>> {
        let (mut places, mut at) = (Vec::new(), FIRST);
        for event in events {
            let length = event_length(event);
            let place = at..at.checked_add(length)?;
            if place.end > self.region.len() {
                return None;
            }
            write_event(event, length, &mut self.range(place.clone())).ok()?;
            at += length.next_multiple_of(ALIGNMENT);
            places.push(place);
        }
        Some(places)
    }

    fn range(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: this is the only mapping that can write, and `self` is borrowed as long as the slice. A process reads
        // here only before its verdict, and its verdicts have come.
        unsafe { self.region.bytes_mut(range) }
    }
}

/// The area of a filter unit, as its process has it.
#[derive(Debug)]
pub(crate) struct Events(Arc<Region>);

impl Events {
    /// Maps the area behind a descriptor of this process. None if there is none, or another file: a program that started
    /// this one may have closed it.
    pub(crate) fn open(descriptor: u32, hello: &[u8]) -> Option<Self> {
        if descriptor == 0 {
            return None;
        }
        let file = File::open(format!("/proc/self/fd/{descriptor}")).ok()?;
        let length = usize::try_from(fstat(&file).ok()?.st_size).ok()?;
        let events = Self(Region::map(&file, length, false).ok()?);
        (length >= FIRST && events.range(0..HELLO_FIXED) == hello.get(..HELLO_FIXED)?).then_some(events)
    }

    /// The bytes of a place; `None` if it is not a place for an event. They are used only before the verdict.
    pub(crate) fn at(&self, place: Range<usize>) -> Option<&[u8]> {
        let is_place = place.start >= FIRST && place.start.is_multiple_of(8);
        (is_place && place.start <= place.end && place.end <= self.0.len()).then(|| self.range(place))
    }

    fn range(&self, range: Range<usize>) -> &[u8] {
        // SAFETY: the builder writes only while this process owes it no verdict, and the caller uses the bytes before
        // that.
        unsafe { self.0.bytes(range) }
    }
}

#[cfg(test)]
pub(crate) mod tests;
