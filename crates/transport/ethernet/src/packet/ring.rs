//! The ring of a packet socket into which the kernel writes frames (version 2 of PACKET_MMAP: each frame has a slot, and
//! is there for the reader at once).
//!
//! # Safety
//! The mapping has `slots` slots of `slot_bytes` each, and lives as long as the ring, whose file is kept open by its socket.
//! A slot has one owner, which its status word names: the kernel writes to a slot only while the status is
//! `TP_STATUS_KERNEL`, and this module reads it only after it has seen `TP_STATUS_USER` with acquire, and until it gives it
//! back with release. No reference to a slot outlives that. Offsets and lengths in a slot are checked against its size before
//! they are followed.

#![allow(unsafe_code, reason = "memory that the kernel writes to")]

use super::socket::Socket;
use crate::frame::MOST_ETHERNET_BYTES;
use std::{
    ffi::c_int,
    io,
    os::fd::{AsFd, AsRawFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering},
};

/// Bytes of a slot before the frame, at most: the header, the sender's address, and what alignment adds.
const FRONT_BYTES: usize = 96;
/// Fewest slots, however long frames are.
const LEAST_SLOTS: usize = 64;
/// Least bytes of a block, which the kernel takes as one piece.
const BLOCK_BYTES: usize = 64 << 10;

/// The ring.
#[derive(Debug)]
pub(super) struct Ring {
    memory: NonNull<u8>,
    bytes: usize,
    slot_bytes: usize,
    /// Slots of a block, and bytes of a block: slots do not cross the border of blocks.
    in_block: usize,
    block_bytes: usize,
    slots: usize,
    /// The next slot that the kernel fills.
    next: usize,
}

// SAFETY: the mapping belongs to this ring alone, and can be used from any thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring for frames with `mtu` bytes behind their Ethernet headers, with about `bytes`.
    pub(super) fn map(socket: &Socket, mtu: usize, bytes: usize) -> io::Result<Self> {
        let slot_bytes = (FRONT_BYTES + MOST_ETHERNET_BYTES + mtu).next_multiple_of(libc::TPACKET_ALIGNMENT);
        let block_bytes = slot_bytes.max(BLOCK_BYTES).next_power_of_two();
        let in_block = block_bytes / slot_bytes;
        let blocks = (bytes / slot_bytes).max(LEAST_SLOTS).div_ceil(in_block);
        let (slots, bytes) = (blocks * in_block, blocks * block_bytes);
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, file) = (libc::PROT_READ | libc::PROT_WRITE, socket.as_fd().as_raw_fd());
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0) };
        let memory = NonNull::new(memory.cast()).filter(|_| memory != libc::MAP_FAILED);
        let memory = memory.ok_or_else(io::Error::last_os_error)?;
        Ok(Self { memory, bytes, slot_bytes, in_block, block_bytes, slots, next: 0 })
    }

    /// Number of slots.
    pub(super) const fn frames(&self) -> usize {
        self.slots
    }

    /// Calls `take` with at most `limit` frames; returns their number.
    #[inline]
    pub(super) fn take(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < limit {
            let place = self.next / self.in_block * self.block_bytes + self.next % self.in_block * self.slot_bytes;
            // SAFETY: the slot lies in the mapping, and begins with its aligned status word, which is accessed as an atomic
            // only. The frame is read between acquire and release of the slot, within its bounds.
            unsafe {
                let slot = self.memory.add(place);
                let header: NonNull<libc::tpacket2_hdr> = slot.cast();
                let status = AtomicU32::from_ptr(&raw mut (*header.as_ptr()).tp_status);
                if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                    break;
                }
                let (begin, length) = (usize::from((*header.as_ptr()).tp_mac), (*header.as_ptr()).tp_snaplen as usize);
                if begin + length <= self.slot_bytes {
                    take(std::slice::from_raw_parts(slot.add(begin).as_ptr(), length));
                }
                status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            }
            self.next = if self.next + 1 == self.slots { 0 } else { self.next + 1 };
            count += 1;
        }
        count
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of this length, to which there is no other reference. A failure leaves it mapped.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
