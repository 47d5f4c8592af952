//! What the provider offers, and whether it suits a program.
//!
//! # Safety
//! Hints are valid or null, as libfabric promises. Answers are allocated by the C library, since libfabric frees them so.

#![allow(unsafe_code, reason = "reads and allocates structures of C")]

use evb_libfabric_abi::*;
use evb_velo_device::{Address, BLOCK_BYTES, CARD_BYTES, GRANTS, NOTE_SPANS, NOTES};
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::null_mut,
    sync::OnceLock,
};

/// The version of libfabric's interface that the provider has: programs of Open MPI 5 ask for it. The structures are those of
/// 1.17, with [room](Roomy) for what came later.
pub(crate) const INTERFACE: u32 = version(1, 18);
/// Name of the provider, of its fabric and of its domain.
pub(crate) const NAME: &CStr = c"velo";

const SEND_CAPS: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_READ | FI_WRITE;
const RECEIVE_CAPS: u64 =
    FI_MSG | FI_TAGGED | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_SOURCE;
/// Open MPI asks for communication with other machines even if it has one: it is accepted, and other machines are not found.
const CAPS: u64 = SEND_CAPS | RECEIVE_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM;

/// What the hardware does not do: remote memory.
const MEMORY_CAPS: u64 = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

/// The variable with the name of simulated hardware, through which messages then go instead of shared memory.
pub(crate) const HARDWARE: &str = "FI_VELO_HARDWARE";

/// Flags of a send that is complete only when its receiver has it: messages of up to a block are complete when they are copied.
pub(crate) const LATE_COMPLETION: u64 = FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE;

/// Orders that hold: sends after sends.
const ORDERS: u64 = FI_ORDER_SAS;
/// The format of addresses: 16 bytes.
const ADDRESS_FORMAT: u32 = 1 << 31 | 0x5645_4c4f;

/// Attributes of a domain, and zeros where later versions of libfabric have more of them, which they copy.
#[repr(C)]
struct Roomy {
    attr: DomainAttr,
    later: [u64; 4],
}

/// The name of the hardware that the environment asks for.
pub(crate) fn hardware() -> Option<&'static str> {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var(HARDWARE).ok().filter(|name| !name.is_empty())).as_deref()
}

/// What an endpoint can do, and its longest message in bytes.
fn abilities() -> (u64, usize) {
    if hardware().is_some() { (CAPS & !MEMORY_CAPS, CARD_BYTES) } else { (CAPS, 1 << 62) }
}

/// # Safety
/// The pointer is null or valid.
unsafe fn maybe<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }
}

fn allocate<T>(value: T) -> *mut T {
    // SAFETY: memory of the right size, or null, which ends the process as any failed allocation does.
    unsafe {
        let place = libc::malloc(size_of::<T>()).cast::<T>();
        assert!(!place.is_null(), "no memory");
        place.write(value);
        place
    }
}

fn text(name: &CStr) -> *mut c_char {
    // SAFETY: the name is a C string.
    unsafe { libc::strdup(name.as_ptr()) }
}

/// Returns true if the hints ask for nothing that is missing.
fn suits(hints: &Info) -> bool {
    // SAFETY: libfabric passes valid hints.
    let (ep, domain, fabric, tx, rx) = unsafe {
        (
            maybe(hints.ep_attr),
            maybe(hints.domain_attr),
            maybe(hints.fabric_attr),
            maybe(hints.tx_attr),
            maybe(hints.rx_attr),
        )
    };
    // SAFETY: names are C strings or null.
    let named = |name: *mut c_char| name.is_null() || unsafe { CStr::from_ptr(name) } == NAME;
    let (caps, most_bytes) = abilities();
    hints.caps & !caps == 0
        && (hints.addr_format == 0 || hints.addr_format == ADDRESS_FORMAT)
        && ep.is_none_or(|ep| {
            (ep.r#type == 0 || ep.r#type == FI_EP_RDM)
                && ep.protocol == 0
                && ep.msg_prefix_size == 0
                && ep.max_msg_size <= most_bytes
                && ep.tx_ctx_cnt <= 1
                && ep.rx_ctx_cnt <= 1
        })
        && domain.is_none_or(|domain| named(domain.name) && domain.cq_data_size <= 8 && domain.data_progress != 1)
        && fabric.is_none_or(|fabric| named(fabric.name))
        && tx.is_none_or(|tx| {
            tx.inject_size <= BLOCK_BYTES
                && tx.iov_limit <= NOTE_SPANS
                && tx.size <= NOTES
                && tx.op_flags & LATE_COMPLETION == 0
                && tx.msg_order & !ORDERS == 0
                && tx.comp_order == 0
        })
        && rx.is_none_or(|rx| rx.iov_limit <= NOTE_SPANS && rx.msg_order & !ORDERS == 0 && rx.comp_order == 0)
}

/// `fi_getinfo`.
///
/// # Safety
/// Called by libfabric with hints that are valid or null.
pub(crate) unsafe extern "C" fn getinfo(
    _version: u32,
    node: *const c_char,
    _service: *const c_char,
    flags: u64,
    hints: *const Info,
    info: *mut *mut Info,
) -> c_int {
    // SAFETY: as the caller promises.
    let hints = unsafe { maybe(hints) };
    if hints.is_some_and(|hints| !suits(hints)) || (!node.is_null() && flags & FI_SOURCE == 0) {
        return -FI_ENODATA as c_int;
    }
    // SAFETY: libfabric gives a place for the answer.
    unsafe { *info = allocate(offer(hints)) };
    0
}

fn offer(hints: Option<&Info>) -> Info {
    // SAFETY: attributes of hints are valid or null.
    let (domain, tx, rx) = unsafe {
        (
            hints.and_then(|hints| maybe(hints.domain_attr)),
            hints.and_then(|hints| maybe(hints.tx_attr)),
            hints.and_then(|hints| maybe(hints.rx_attr)),
        )
    };
    let (all, most_bytes) = abilities();
    let caps = hints.map_or(all, |hints| if hints.caps == 0 { all } else { hints.caps | FI_LOCAL_COMM });
    let mr_mode = match domain.map_or(0, |domain| domain.mr_mode) {
        FI_MR_BASIC => FI_MR_BASIC,
        FI_MR_SCALABLE => FI_MR_SCALABLE,
        _ => 0,
    };
    let tx_flags = tx.map_or(0, |tx| tx.op_flags);
    let rx_flags = rx.map_or(0, |rx| rx.op_flags);
    let destination = hints.filter(|hints| !hints.dest_addr.is_null() && hints.dest_addrlen == Address::BYTES);
    // SAFETY: the hints hold an address of this length, and libfabric frees the copy.
    let dest_addr =
        destination.map_or(null_mut(), |hints| unsafe { allocate(*hints.dest_addr.cast::<[u8; 16]>()) }.cast());
    Info {
        next: null_mut(),
        caps,
        mode: 0,
        addr_format: ADDRESS_FORMAT,
        src_addrlen: 0,
        dest_addrlen: if destination.is_some() { Address::BYTES } else { 0 },
        src_addr: null_mut::<c_void>(),
        dest_addr,
        handle: null_mut(),
        tx_attr: allocate(TxAttr {
            caps: caps & SEND_CAPS,
            mode: 0,
            op_flags: tx_flags,
            msg_order: ORDERS,
            comp_order: 0,
            inject_size: BLOCK_BYTES,
            size: 1024,
            iov_limit: NOTE_SPANS,
            rma_iov_limit: 1,
            tclass: 0,
        }),
        rx_attr: allocate(RxAttr {
            caps: caps & RECEIVE_CAPS,
            mode: 0,
            op_flags: rx_flags,
            msg_order: ORDERS,
            comp_order: 0,
            total_buffered_recv: 0,
            size: 1024,
            iov_limit: NOTE_SPANS,
        }),
        ep_attr: allocate(EpAttr {
            r#type: FI_EP_RDM,
            protocol: 1 << 31 | 1,
            protocol_version: 1,
            max_msg_size: most_bytes,
            msg_prefix_size: 0,
            max_order_raw_size: 0,
            max_order_war_size: 0,
            max_order_waw_size: 0,
            mem_tag_format: u64::MAX,
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            auth_key_size: 0,
            auth_key: null_mut(),
        }),
        domain_attr: allocate(Roomy {
            attr: DomainAttr {
                domain: null_mut(),
                name: text(NAME),
                threading: FI_THREAD_SAFE,
                control_progress: FI_PROGRESS_MANUAL,
                data_progress: FI_PROGRESS_MANUAL,
                resource_mgmt: FI_RM_ENABLED,
                av_type: domain
                    .map_or(FI_AV_TABLE, |domain| if domain.av_type == 0 { FI_AV_TABLE } else { domain.av_type }),
                mr_mode,
                mr_key_size: 8,
                cq_data_size: 8,
                cq_cnt: 1024,
                ep_cnt: 1024,
                tx_ctx_cnt: 1024,
                rx_ctx_cnt: 1024,
                max_ep_tx_ctx: 1,
                max_ep_rx_ctx: 1,
                max_ep_stx_ctx: 0,
                max_ep_srx_ctx: 0,
                cntr_cnt: 1024,
                mr_iov_limit: 1,
                caps: FI_LOCAL_COMM,
                mode: 0,
                auth_key: null_mut(),
                auth_key_size: 0,
                max_err_data: 0,
                mr_cnt: GRANTS,
                tclass: 0,
            },
            later: [0; 4],
        })
        .cast(),
        fabric_attr: allocate(FabricAttr {
            fabric: null_mut(),
            name: text(NAME),
            prov_name: null_mut(),
            prov_version: 1 << 16,
            api_version: INTERFACE,
        }),
        nic: null_mut(),
    }
}
