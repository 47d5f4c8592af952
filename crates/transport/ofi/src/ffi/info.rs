//! Offers of a provider: `fi_getinfo` and its list.
//!
//! # Invariant
//! An [`InfoList`] owns a list that the library allocated, whole and with all attributes that this crate reads, and frees
//! it once. Texts in it are C strings or null.

#![allow(unsafe_code, reason = "lists that the library allocates")]

use super::{
    library::{Library, library},
    rooms::PIECES,
};
use crate::OfiError;
use evb_libfabric_abi::*;
use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, c_char},
    ptr,
};

/// The requested interface. Nothing newer is used, and libraries since 2021 have it.
const VERSION: u32 = version(1, 14);

/// Supported modes of memory registration. This crate registers its messages when the provider demands it
/// ([`FI_MR_LOCAL`]), and all memory that peers write into.
const MR_MODES: i32 = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

pub(crate) struct InfoList {
    api: &'static Library,
    first: *mut Info,
}

impl InfoList {
    /// The provider's offers for reliable tagged messages, and with `writes` also for writes into the memory of a peer if
    /// it has them. `interface` is the address that this side uses.
    pub(crate) fn find(provider: &str, interface: Option<&str>, writes: bool) -> Result<Self, OfiError> {
        let library = library()?;
        let node = interface.map(|text| c_text("the interface", text)).transpose()?;
        if writes {
            let hints = Self::hints(library)?;
            hints.ask_for(provider, FI_RMA | FI_WRITE | FI_REMOTE_WRITE)?;
            if let Ok(list) = Self::query(library, node.as_ref(), Some(&hints)) {
                return Ok(list);
            }
        }
        let hints = Self::hints(library)?;
        hints.ask_for(provider, 0)?;
        match Self::query(library, node.as_ref(), Some(&hints)) {
            Ok(list) => Ok(list),
            Err(reason) => Err(OfiError::Provider {
                provider: provider.to_owned(),
                interface: interface.map(|text| format!(" on {text}")).unwrap_or_default(),
                reason: library.describe(reason),
                library: library.version_text(),
                others: providers().map(|names| names.join(", ")).unwrap_or_default(),
            }),
        }
    }

    fn hints(library: &'static Library) -> Result<Self, OfiError> {
        // SAFETY: without a model, the function allocates an empty info with all attributes.
        let first = unsafe { (library.dupinfo)(ptr::null()) };
        if first.is_null() {
            return Err(OfiError::Call { call: "fi_allocinfo", reason: "no memory".into() });
        }
        Ok(Self { api: library, first })
    }

    /// Fills in the hints, with these abilities beside tagged messages.
    fn ask_for(&self, provider: &str, more: u64) -> Result<(), OfiError> {
        let name = c_text("the provider's name", provider)?;
        // SAFETY: `fi_allocinfo` has made this info with the attributes that are written here, and no other owner has it.
        // `fi_freeinfo` frees the name with `free`, as `strdup` wants it.
        unsafe {
            let (info, domain) = (&mut *self.first, &mut *(*self.first).domain_attr);
            info.caps = FI_TAGGED | FI_SEND | FI_RECV | more;
            info.mode = FI_CONTEXT | FI_CONTEXT2;
            (*info.ep_attr).r#type = FI_EP_RDM;
            domain.threading = FI_THREAD_DOMAIN;
            domain.data_progress = FI_PROGRESS_MANUAL;
            domain.control_progress = FI_PROGRESS_MANUAL;
            domain.resource_mgmt = FI_RM_ENABLED;
            domain.mr_mode = MR_MODES;
            (*info.fabric_attr).prov_name = strdup(name.as_ptr());
        }
        Ok(())
    }

    fn query(library: &'static Library, node: Option<&CString>, hints: Option<&Self>) -> Result<Self, i32> {
        let mut first = ptr::null_mut();
        let node_text = node.map_or(ptr::null(), |node| node.as_ptr());
        let flags = if node.is_some() { FI_SOURCE } else { 0 };
        let hints = hints.map_or(ptr::null_mut(), |hints| hints.first);
        // SAFETY: texts end with a zero, the hints come from the library, and what comes back belongs to this list.
        let result = unsafe { (library.getinfo)(VERSION, node_text, ptr::null(), flags, hints, &raw mut first) };
        if result == 0 && !first.is_null() { Ok(Self { api: library, first }) } else { Err(result) }
    }

    pub(crate) fn api(&self) -> &'static Library {
        self.api
    }

    /// The first offer of the list, which is the best one for the library.
    pub(crate) fn best(&self) -> *mut Info {
        self.first
    }

    /// The limits of the endpoint.
    pub(crate) fn limits(&self) -> Limits {
        // SAFETY: the list is whole.
        unsafe {
            let info = &*self.first;
            Limits {
                inject_bytes: (*info.tx_attr).inject_size,
                sends: (*info.tx_attr).size,
                receives: (*info.rx_attr).size,
                max_bytes: (*info.ep_attr).max_msg_size,
                tag_format: (*info.ep_attr).mem_tag_format,
                registers: (*info.domain_attr).mr_mode & FI_MR_LOCAL != 0,
                registers_at_endpoint: (*info.domain_attr).mr_mode & FI_MR_ENDPOINT != 0,
                by_address: (*info.domain_attr).mr_mode & FI_MR_VIRT_ADDR != 0,
                writes: info.caps & FI_REMOTE_WRITE != 0
                    && (*info.domain_attr).cq_data_size >= size_of::<u32>()
                    && (*info.tx_attr).iov_limit >= PIECES,
            }
        }
    }

    /// The provider's full name, such as `tcp;ofi_rxm`.
    pub(crate) fn provider(&self) -> String {
        // SAFETY: the list is whole.
        unsafe { name(&*self.first) }
    }

    fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut next = self.first;
        // SAFETY: the list is whole and ends with a null.
        while let Some(info) = unsafe { next.as_ref() } {
            // SAFETY: as above.
            if unsafe { (*info.ep_attr).r#type } == FI_EP_RDM {
                // SAFETY: as above.
                names.insert(unsafe { name(info) });
            }
            next = info.next;
        }
        names
    }
}

impl Drop for InfoList {
    fn drop(&mut self) {
        // SAFETY: the list is the library's and is freed once.
        unsafe { (self.api.freeinfo)(self.first) }
    }
}

/// Limits of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Longest message that is accepted without a completion.
    pub(crate) inject_bytes: usize,
    /// Most sends and receives that are outstanding.
    pub(crate) sends: usize,
    pub(crate) receives: usize,
    /// Longest message.
    pub(crate) max_bytes: usize,
    /// Format of tags: the highest set bit is the highest bit of a tag.
    pub(crate) tag_format: u64,
    /// True if memory must be registered, and bound to the endpoint.
    pub(crate) registers: bool,
    pub(crate) registers_at_endpoint: bool,
    /// True if peers name memory by its address, and false if by the distance from its start.
    pub(crate) by_address: bool,
    /// True if peers can write two pieces of memory at once into a room, and tell with a number of 32 bits that they have.
    pub(crate) writes: bool,
}

/// The providers for reliable messages that the library finds on this machine, by name, such as `tcp;ofi_rxm` or `shm`.
///
/// # Errors
/// [`OfiError::Library`] if there is no library.
pub fn providers() -> Result<Vec<String>, OfiError> {
    let library = library()?;
    let names = InfoList::query(library, None, None).map(|list| list.names()).unwrap_or_default();
    Ok(names.into_iter().collect())
}

/// # Safety
/// `info` must have its fabric attributes, with a C string or null as the name.
unsafe fn name(info: &Info) -> String {
    // SAFETY: as demanded.
    let text = unsafe { (*info.fabric_attr).prov_name };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as demanded.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn c_text(what: &'static str, text: &str) -> Result<CString, OfiError> {
    CString::new(text).map_err(|_| OfiError::Option { reason: format!("{what} {text:?} holds a zero byte") })
}

unsafe extern "C" {
    /// The C library's copy of a string, for `free`.
    fn strdup(text: *const c_char) -> *mut c_char;
}
