//! The used part of libfabric's binary interface for providers, as its headers of version 1.17 declare it.
//!
//! # Invariant
//! Every structure has the fields of the headers in their order; tables of functions that are called with other arguments
//! than declared here hold a function that reads none.

#![allow(unsafe_code, reason = "declares functions that C calls")]

use std::ffi::{c_char, c_int, c_void};

pub(crate) const FI_MSG: u64 = 1 << 1;
pub(crate) const FI_RMA: u64 = 1 << 2;
pub(crate) const FI_TAGGED: u64 = 1 << 3;
pub(crate) const FI_READ: u64 = 1 << 8;
pub(crate) const FI_WRITE: u64 = 1 << 9;
pub(crate) const FI_RECV: u64 = 1 << 10;
pub(crate) const FI_SEND: u64 = 1 << 11;
pub(crate) const FI_REMOTE_READ: u64 = 1 << 12;
pub(crate) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(crate) const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub(crate) const FI_PEEK: u64 = 1 << 19;
pub(crate) const FI_COMPLETION: u64 = 1 << 24;
pub(crate) const FI_INJECT: u64 = 1 << 25;
pub(crate) const FI_SOURCE: u64 = 1 << 57;
pub(crate) const FI_REMOTE_COMM: u64 = 1 << 52;
pub(crate) const FI_LOCAL_COMM: u64 = 1 << 51;
pub(crate) const FI_DIRECTED_RECV: u64 = 1 << 59;
pub(crate) const FI_CLAIM: u64 = 1 << 59;
pub(crate) const FI_DISCARD: u64 = 1 << 58;
pub(crate) const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;

pub(crate) const FI_EAGAIN: isize = 11;
pub(crate) const FI_EINVAL: isize = 22;
pub(crate) const FI_ENOSYS: isize = 38;
pub(crate) const FI_ENOMSG: isize = 42;
pub(crate) const FI_ENODATA: isize = 61;
pub(crate) const FI_EMSGSIZE: isize = 90;
pub(crate) const FI_EHOSTUNREACH: isize = 113;
pub(crate) const FI_ECANCELED: isize = 125;
pub(crate) const FI_ENOKEY: isize = 126;
pub(crate) const FI_EAVAIL: isize = 259;
pub(crate) const FI_ETRUNC: isize = 265;

pub(crate) const FI_ADDR_UNSPEC: u64 = u64::MAX;
/// The format of this provider's addresses: 16 bytes.
pub(crate) const ADDRESS_FORMAT: u32 = 1 << 31 | 0x5645_4c4f;

/// A function that nobody calls, or one that only says that it is missing.
pub(crate) type Missing = extern "C" fn() -> isize;

/// Says that a call is not supported.
pub(crate) extern "C" fn missing() -> isize {
    -FI_ENOSYS
}

/// Agrees without doing anything.
pub(crate) extern "C" fn nothing() -> isize {
    0
}

#[repr(C)]
pub(crate) struct Provider {
    pub(crate) version: u32,
    pub(crate) fi_version: u32,
    pub(crate) context: [usize; 4],
    pub(crate) name: *const c_char,
    pub(crate) getinfo:
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
    pub(crate) fabric: unsafe extern "C" fn(*const FabricAttr, *mut *mut c_void, *mut c_void) -> c_int,
    pub(crate) cleanup: Missing,
}

#[repr(C)]
pub(crate) struct TxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
    pub(crate) rma_iov_limit: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct RxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) total_buffered_recv: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
}

#[repr(C)]
pub(crate) struct EpAttr {
    pub(crate) kind: c_int,
    pub(crate) protocol: u32,
    pub(crate) protocol_version: u32,
    pub(crate) max_msg_size: usize,
    pub(crate) msg_prefix_size: usize,
    pub(crate) max_order_raw_size: usize,
    pub(crate) max_order_war_size: usize,
    pub(crate) max_order_waw_size: usize,
    pub(crate) mem_tag_format: u64,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) auth_key_size: usize,
    pub(crate) auth_key: *mut u8,
}

#[repr(C)]
pub(crate) struct DomainAttr {
    pub(crate) domain: *mut c_void,
    pub(crate) name: *mut c_char,
    pub(crate) threading: c_int,
    pub(crate) control_progress: c_int,
    pub(crate) data_progress: c_int,
    pub(crate) resource_mgmt: c_int,
    pub(crate) av_type: c_int,
    pub(crate) mr_mode: c_int,
    pub(crate) mr_key_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) cq_cnt: usize,
    pub(crate) ep_cnt: usize,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) max_ep_tx_ctx: usize,
    pub(crate) max_ep_rx_ctx: usize,
    pub(crate) max_ep_stx_ctx: usize,
    pub(crate) max_ep_srx_ctx: usize,
    pub(crate) cntr_cnt: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) auth_key: *mut u8,
    pub(crate) auth_key_size: usize,
    pub(crate) max_err_data: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct FabricAttr {
    pub(crate) fabric: *mut c_void,
    pub(crate) name: *mut c_char,
    pub(crate) prov_name: *mut c_char,
    pub(crate) prov_version: u32,
    pub(crate) api_version: u32,
}

#[repr(C)]
pub(crate) struct Info {
    pub(crate) next: *mut Info,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) addr_format: u32,
    pub(crate) src_addrlen: usize,
    pub(crate) dest_addrlen: usize,
    pub(crate) src_addr: *mut c_void,
    pub(crate) dest_addr: *mut c_void,
    pub(crate) handle: *mut Fid,
    pub(crate) tx_attr: *mut TxAttr,
    pub(crate) rx_attr: *mut RxAttr,
    pub(crate) ep_attr: *mut EpAttr,
    pub(crate) domain_attr: *mut DomainAttr,
    pub(crate) fabric_attr: *mut FabricAttr,
    pub(crate) nic: *mut c_void,
}

/// The beginning of every object. `ops` points to a table of type `FidOps`.
#[repr(C)]
pub(crate) struct Fid {
    pub(crate) class: usize,
    pub(crate) context: *mut c_void,
    pub(crate) ops: *const FidOps,
}

#[repr(C)]
pub(crate) struct FidOps {
    pub(crate) size: usize,
    pub(crate) close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(crate) bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub(crate) control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub(crate) rest: [Missing; 3],
}

/// A table of functions behind its size.
#[repr(C)]
pub(crate) struct Table<const N: usize> {
    pub(crate) size: usize,
    pub(crate) calls: [Call; N],
}

/// Any function of a table.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Call(pub(crate) *const c_void);

// SAFETY: the address of a function can be used by any thread.
unsafe impl Sync for Call {}

/// A call of libfabric that the provider does not have.
pub(crate) const NONE: Call = Call(missing as *const c_void);
/// A call that does nothing.
pub(crate) const IDLE: Call = Call(nothing as *const c_void);

impl<const N: usize> Table<N> {
    pub(crate) const fn new(calls: [Call; N]) -> Self {
        Self { size: size_of::<Self>(), calls }
    }
}

pub(crate) const CLASS_FABRIC: usize = 1;
pub(crate) const CLASS_DOMAIN: usize = 2;
pub(crate) const CLASS_EP: usize = 3;
pub(crate) const CLASS_AV: usize = 11;
pub(crate) const CLASS_MR: usize = 12;
pub(crate) const CLASS_EQ: usize = 13;
pub(crate) const CLASS_CQ: usize = 14;
pub(crate) const CLASS_CNTR: usize = 15;

#[repr(C)]
pub(crate) struct Msg {
    pub(crate) iov: *const evb_velo_device::Span,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) count: usize,
    pub(crate) addr: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct MsgTagged {
    pub(crate) iov: *const evb_velo_device::Span,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) count: usize,
    pub(crate) addr: u64,
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct RmaIov {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    pub(crate) key: u64,
}

#[repr(C)]
pub(crate) struct MsgRma {
    pub(crate) iov: *const evb_velo_device::Span,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) count: usize,
    pub(crate) addr: u64,
    pub(crate) rma_iov: *const RmaIov,
    pub(crate) rma_count: usize,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

/// An entry of a completion queue in its longest format; the shorter ones are its beginning.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CqEntry {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CqError {
    pub(crate) entry: CqEntry,
    pub(crate) olen: usize,
    pub(crate) err: c_int,
    pub(crate) prov_errno: c_int,
    pub(crate) err_data: usize,
    pub(crate) err_data_size: usize,
}

#[repr(C)]
pub(crate) struct CqAttr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) format: c_int,
    pub(crate) wait_obj: c_int,
}

#[repr(C)]
pub(crate) struct MrAttr {
    pub(crate) iov: *const evb_velo_device::Span,
    pub(crate) count: usize,
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) key: u64,
    pub(crate) context: *mut c_void,
}
