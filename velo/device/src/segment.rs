//! Words and bytes of a mapped segment.
//!
//! # Safety
//! A segment is mapped with its `BYTES` as long as its [`Region`] lives, and every access is checked against that size.
//! Words are atomic. Bytes are copied by pointers and never borrowed, so another process may write to them at any time: it
//! can spoil the bytes of a message, and nothing else.

#![allow(unsafe_code, reason = "accesses memory that other processes write")]

use crate::{
    fetch::{self, Span},
    layout::{GRANT_BYTES, GRANTS, GRANTS_AT, SEGMENT_BYTES},
};
use evb_os::memory::Region;
use std::{
    io,
    os::fd::AsFd,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

/// A mapped segment, that of a device as a rule.
#[derive(Clone, Debug)]
pub(crate) struct Segment<const BYTES: usize = SEGMENT_BYTES> {
    /// Keeps the mapping.
    _region: Arc<Region>,
    start: NonNull<u8>,
}

// SAFETY: the start is that of the region, which is `Send` and `Sync`, and lives as long.
unsafe impl<const BYTES: usize> Send for Segment<BYTES> {}
// SAFETY: as above.
unsafe impl<const BYTES: usize> Sync for Segment<BYTES> {}

impl<const BYTES: usize> Segment<BYTES> {
    pub(crate) fn map(file: impl AsFd) -> io::Result<Self> {
        let region = Region::map(file, BYTES, true)?;
        assert_eq!(region.len(), BYTES, "length of a segment");
        Ok(Self { start: region.start(), _region: region })
    }

    /// The word at this byte, which is a multiple of 8.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= BYTES, "word at {at}");
        // SAFETY: it lies in the mapping, is aligned, and all access to it is atomic.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// The half word at this byte, which is a multiple of 4.
    #[inline]
    pub(crate) fn half(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= BYTES, "half word at {at}");
        // SAFETY: as in `word`.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Copies memory of a program to this byte, from byte `skip` of it on, and `room` bytes at most; the number of copied bytes.
    #[inline]
    pub(crate) fn fill(&self, at: usize, room: usize, spans: &[Span], skip: usize) -> usize {
        assert!(at <= BYTES && room <= BYTES - at, "{room} bytes at {at}");
        // SAFETY: the target lies in the mapping.
        unsafe { fetch::gather(spans, skip, self.start.add(at).as_ptr(), room) }
    }

    /// Copies bytes from here into memory of a program, from byte `skip` of it on.
    #[inline]
    pub(crate) fn drain(&self, at: usize, length: usize, spans: &[Span], skip: usize) {
        assert!(at <= BYTES && length <= BYTES - at, "{length} bytes at {at}");
        // SAFETY: the source lies in the mapping.
        unsafe { fetch::scatter(spans, skip, self.start.add(at).as_ptr(), length) };
    }

    #[inline]
    pub(crate) fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(at <= BYTES && bytes.len() <= BYTES - at, "{} bytes at {at}", bytes.len());
        // SAFETY: the source lies in the mapping, and a borrowed slice does not.
        unsafe { std::ptr::copy_nonoverlapping(self.start.add(at).as_ptr(), bytes.as_mut_ptr(), bytes.len()) }
    }
}

/// Memory that an owner lends to other processes: they read or write it without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The number that others name it by.
    pub key: u64,
    /// First byte in the memory of the owner.
    pub address: u64,
    /// Length in bytes.
    pub length: u64,
    /// 1: may be read; 2: may be written.
    pub rights: u64,
}

impl Segment {
    fn entry(&self, index: usize) -> [&AtomicU64; 4] {
        [0, 8, 16, 24].map(|word| self.word(GRANTS_AT + index * GRANT_BYTES + word))
    }

    /// Lends memory. False if the key is in use, or no place is left. Only the owner calls this, one thread at a time.
    pub(crate) fn lend(&self, grant: Grant) -> bool {
        if self.lent(grant.key).is_some() || grant.rights == 0 {
            return false;
        }
        let free = (0..GRANTS).map(|index| self.entry(index)).find(|entry| entry[3].load(Ordering::Acquire) == 0);
        let Some([key, address, length, rights]) = free else { return false };
        key.store(grant.key, Ordering::Relaxed);
        address.store(grant.address, Ordering::Relaxed);
        length.store(grant.length, Ordering::Relaxed);
        rights.store(grant.rights, Ordering::Release);
        true
    }

    pub(crate) fn take_back(&self, key: u64) {
        for entry in (0..GRANTS).map(|index| self.entry(index)) {
            if entry[3].load(Ordering::Acquire) != 0 && entry[0].load(Ordering::Relaxed) == key {
                entry[3].store(0, Ordering::Release);
            }
        }
    }

    pub(crate) fn lent(&self, key: u64) -> Option<Grant> {
        (0..GRANTS).map(|index| self.entry(index)).find_map(|[name, address, length, rights]| {
            let rights = rights.load(Ordering::Acquire);
            let found = rights != 0 && name.load(Ordering::Relaxed) == key;
            let (address, length) = (address.load(Ordering::Relaxed), length.load(Ordering::Relaxed));
            found.then_some(Grant { key, address, length, rights })
        })
    }
}
