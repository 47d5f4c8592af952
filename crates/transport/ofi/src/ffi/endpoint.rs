//! An endpoint with its queue and its operations.

#![allow(unsafe_code, reason = "calls into the library")]

mod operations;

pub(super) use operations::posted;

use super::{
    info::{InfoList, Limits},
    library::Library,
    memory::{Context, Entry, Memory, Operation, Slab},
    objects::{Objects, close_registration, descriptor},
    rooms::Room,
    stale,
};
use crate::OfiError;
use bytes::Bytes;
use evb_libfabric_abi::*;
use evb_transport::ReceiveBuffers;
use std::{ffi::c_void, mem, os::fd::RawFd, ptr};

/// Most completions that are read at once.
pub(crate) const BATCH: usize = 16;
/// Most bytes of an address; the longest known are those of shared memory, of at most 256 bytes.
const ADDRESS_BYTES: usize = 512;

/// The provider that shares mappings, see [`Objects::part`].
const SHARES_MAPPINGS: &str = "shm";
/// The provider that follows a null pointer when it is closed while a peer writes into memory of this node (seen with
/// libfabric 1.17): the end of that write comes without a context, and it takes it for an operation of the provider.
const BREAKS_WITHIN_WRITES: &str = "ofi_rxm";

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Posted {
    /// The provider has accepted the operation.
    Yes,
    /// There is no room: poll, then try again.
    Again,
    /// The operation is impossible; the error number.
    Failed(i32),
}

/// An operation is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The operation; `None` for an injected message that failed, and for a write into a room that was not offered.
    pub(crate) operation: Option<Operation>,
    /// The sender's tag of a receive, and its length in bytes. A write has neither.
    pub(crate) tag: u64,
    pub(crate) bytes: usize,
    /// The error number of a failed operation.
    pub(crate) error: Option<i32>,
}

/// The objects of one node, and all memory that the provider may use.
pub(crate) struct Endpoint {
    info: InfoList,
    pub(super) limits: Limits,
    pub(super) objects: Objects,
    pub(super) rooms: ReceiveBuffers<Room>,
    wait_fd: Option<RawFd>,
    /// Entries without memory.
    free: Vec<u32>,
    next_key: u64,
    batch: [CqEntry; BATCH],
    read: usize,
    /// True if the last poll found a failed operation.
    failed: bool,
}

// SAFETY: invariant 4 of the folder; what the list of infos and the batch point to belongs to the endpoint, too.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// Opens an endpoint. With `sleeps`, the queue has a file to sleep on if the provider supports that. With `writes`,
    /// peers may write into its rooms if the provider supports that ([`Limits::writes`]).
    pub(crate) fn open(provider: &str, interface: Option<&str>, sleeps: bool, writes: bool) -> Result<Self, OfiError> {
        let info = InfoList::find(provider, interface, writes)?;
        let (mut limits, nothing) = (info.limits(), CqEntry::default());
        limits.writes &= writes;
        let mut new = Self {
            info,
            limits,
            objects: Objects::none(),
            rooms: ReceiveBuffers::default(),
            wait_fd: None,
            free: Vec::new(),
            next_key: 0,
            batch: [nothing; BATCH],
            read: 0,
            failed: false,
        };
        if new.shares_mappings() {
            stale::remove();
            Objects::share();
        }
        new.open_objects(sleeps)?;
        Ok(new)
    }

    fn open_objects(&mut self, sleeps: bool) -> Result<(), OfiError> {
        let (library, info) = (self.api(), self.info.best());
        let none = ptr::null_mut();
        let mut addresses =
            AvAttr { r#type: 0, rx_ctx_bits: 0, count: 0, ep_per_node: 0, name: ptr::null(), map_addr: none, flags: 0 };
        // SAFETY: the info is whole; each object is open before it is used, and its table is that of its kind. What is
        // open when a call fails is closed by `drop`.
        unsafe {
            addresses.r#type = (*(*info).domain_attr).av_type;
            library.check("fi_fabric", (library.fabric)((*info).fabric_attr, &raw mut self.objects.fabric, none))?;
            let open = (*(*self.objects.fabric).ops).domain;
            library.check("fi_domain", open(self.objects.fabric, info, &raw mut self.objects.domain, none))?;
            let open = (*(*self.objects.domain).ops).av_open;
            library.check(
                "fi_av_open",
                open(self.objects.domain, &raw mut addresses, &raw mut self.objects.vector, none),
            )?;
            if !(sleeps && self.open_queue(FI_WAIT_FD).is_ok()) {
                self.open_queue(FI_WAIT_NONE)?;
            }
            let open = (*(*self.objects.domain).ops).endpoint;
            library.check("fi_endpoint", open(self.objects.domain, info, &raw mut self.objects.endpoint, none))?;
            let fid = &raw mut (*self.objects.endpoint).fid;
            let ops = (*fid).ops;
            library.check("fi_ep_bind", ((*ops).bind)(fid, &raw mut (*self.objects.vector).fid, 0))?;
            library
                .check("fi_ep_bind", ((*ops).bind)(fid, &raw mut (*self.objects.queue).fid, FI_TRANSMIT | FI_RECV))?;
            library.check("fi_enable", ((*(*fid).ops).control)(fid, FI_ENABLE, none))
        }
    }

    fn open_queue(&mut self, wait: i32) -> Result<(), OfiError> {
        let mut attributes = CqAttr {
            size: self.limits.sends + self.limits.receives,
            flags: 0,
            format: FI_CQ_FORMAT_TAGGED,
            wait_obj: wait,
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: ptr::null_mut(),
        };
        let library = self.api();
        // SAFETY: the domain is open and the attributes are whole.
        unsafe {
            let open = (*(*self.objects.domain).ops).cq_open;
            let result = open(self.objects.domain, &raw mut attributes, &raw mut self.objects.queue, ptr::null_mut());
            library.check("fi_cq_open", result)?;
            let (fid, mut file) = (&raw mut (*self.objects.queue).fid, -1);
            if wait == FI_WAIT_FD && ((*(*fid).ops).control)(fid, FI_GETWAIT, (&raw mut file).cast()) == 0 {
                self.wait_fd = Some(file);
            }
        }
        Ok(())
    }

    /// Returns true if the provider cannot close this endpoint now, since a peer is in the middle of a write.
    pub(crate) fn must_stay_open(&self) -> bool {
        self.info.provider().ends_with(BREAKS_WITHIN_WRITES) && self.is_written()
    }

    fn shares_mappings(&self) -> bool {
        self.info.provider() == SHARES_MAPPINGS
    }

    fn api(&self) -> &'static Library {
        self.info.api()
    }

    /// The limits of the provider.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The provider's full name.
    pub(crate) fn provider(&self) -> String {
        self.info.provider()
    }

    /// The meaning of an error number.
    pub(crate) fn describe(&self, error: i32) -> String {
        self.api().describe(error)
    }

    /// The address of this endpoint. Only the same provider understands its bytes.
    pub(crate) fn address(&self) -> Result<Vec<u8>, OfiError> {
        let (mut bytes, mut length) = (vec![0; ADDRESS_BYTES], ADDRESS_BYTES);
        // SAFETY: the endpoint is open, and there are `length` bytes of room.
        let result = unsafe {
            ((*(*self.objects.endpoint).cm).getname)(
                &raw mut (*self.objects.endpoint).fid,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        self.api().check("fi_getname", result)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Adds another endpoint and returns its local number. The bytes must come from [`address`](Endpoint::address) for
    /// the same provider: their length is compared with this endpoint's own.
    pub(crate) fn insert(&mut self, address: &[u8]) -> Result<u64, OfiError> {
        let mut number = FI_ADDR_UNSPEC;
        // Providers read up to the end of an address, which is a text with a zero or a structure of a fixed length.
        let mut padded = vec![0; ADDRESS_BYTES.max(address.len() + 1)];
        padded[..address.len()].copy_from_slice(address);
        // SAFETY: the vector is open; there are more bytes than any address has.
        let result = unsafe {
            let insert = (*(*self.objects.vector).ops).insert;
            insert(self.objects.vector, padded.as_ptr().cast(), 1, &raw mut number, 0, ptr::null_mut())
        };
        self.api().check("fi_av_insert", result)?;
        match number {
            FI_ADDR_UNSPEC => Err(OfiError::Call { call: "fi_av_insert", reason: "the address was refused".into() }),
            number => Ok(number),
        }
    }

    /// Adds `count` operations with `bytes` bytes of memory each.
    pub(crate) fn add_slab(&mut self, count: usize, bytes: usize) -> Result<Vec<Operation>, OfiError> {
        let slab = Slab::new(count * bytes);
        let registration = self.register(slab.start(), count * bytes, FI_SEND | FI_RECV)?;
        let (start, descriptor) = (slab.start(), descriptor(registration));
        self.objects.slabs.push(slab);
        self.objects.registrations.push(registration);
        let part = |index: usize| start.wrapping_add(index * bytes);
        Ok((0..count).map(|index| self.add(part(index), bytes, descriptor, Memory::Slab)).collect())
    }

    /// An operation that sends this body in place.
    pub(crate) fn share(&mut self, body: Bytes) -> Result<Operation, OfiError> {
        let (start, bytes) = (body.as_ptr().cast_mut(), body.len());
        self.add_registered(start, bytes, Memory::Shared(body))
    }

    pub(super) fn add_registered(
        &mut self,
        start: *mut u8,
        bytes: usize,
        memory: Memory,
    ) -> Result<Operation, OfiError> {
        let is_written = self.limits.writes && matches!(memory, Memory::Room(_));
        let access = FI_SEND | FI_RECV | if is_written { FI_REMOTE_WRITE } else { 0 };
        let registration = self.register(start, bytes, access)?;
        let operation = self.add(start, bytes, descriptor(registration), memory);
        self.objects.entries[operation.0 as usize].registration = registration;
        Ok(operation)
    }

    fn add(&mut self, start: *mut u8, bytes: usize, descriptor: *mut c_void, memory: Memory) -> Operation {
        let index = self.free.pop().unwrap_or(self.objects.entries.len() as u32);
        let there = self.objects.entries.get(index as usize).map(|entry| entry.context);
        let context = there.unwrap_or_else(|| Context::allocate(index));
        let (registration, memory) = (ptr::null_mut(), Some(memory));
        let entry = Entry { context, start, bytes, descriptor, registration, memory, busy: false, joined: None };
        match self.objects.entries.get_mut(index as usize) {
            Some(free) => *free = entry,
            None => self.objects.entries.push(entry),
        }
        Operation(index)
    }

    /// Ends an operation that is not busy, with its memory. Not for slabs.
    pub(crate) fn take(&mut self, operation: Operation) {
        let entry = &mut self.objects.entries[operation.0 as usize];
        assert!(!entry.busy, "the provider has this memory");
        close_registration(mem::replace(&mut entry.registration, ptr::null_mut()));
        entry.memory = None;
        self.free.push(operation.0);
    }

    /// Registers memory if the provider demands it, or if peers write into it.
    fn register(&mut self, start: *mut u8, bytes: usize, access: u64) -> Result<*mut Mr, OfiError> {
        let mut registration = ptr::null_mut();
        if !self.limits.registers && access & FI_REMOTE_WRITE == 0 {
            return Ok(registration);
        }
        self.next_key += 1;
        let (none, key) = (ptr::null_mut(), self.next_key);
        // SAFETY: domain and endpoint are open. The memory lives until its operations are over and the registration is
        // closed: slabs as long as the endpoint, other memory until `take`.
        unsafe {
            let register = (*(*self.objects.domain).mr).reg;
            let domain = &raw mut (*self.objects.domain).fid;
            let result = register(domain, start.cast(), bytes, access, 0, key, 0, &raw mut registration, none);
            self.api().check("fi_mr_reg", result)?;
            if self.limits.registers_at_endpoint {
                let fid = &raw mut (*registration).fid;
                let bound = ((*(*fid).ops).bind)(fid, &raw mut (*self.objects.endpoint).fid, 0);
                self.api().check("fi_mr_bind", bound)?;
                self.api().check("fi_mr_enable", ((*(*fid).ops).control)(fid, FI_ENABLE, none))?;
            }
        }
        Ok(registration)
    }

    /// Registers memory even if the provider does not demand it.
    #[cfg(test)]
    pub(super) fn register_always(&mut self) {
        self.limits.registers = true;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let (shares, must_stay_open) = (self.shares_mappings(), self.must_stay_open());
        let objects = mem::replace(&mut self.objects, Objects::none());
        match must_stay_open {
            // Until the process ends.
            true => mem::forget(objects),
            false => objects.part(shares),
        }
    }
}
