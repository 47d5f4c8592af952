//! Constants. Those of [`NUMBERS`] are compared with the headers.

use std::ffi::c_int;

macro_rules! numbers {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(#[allow(missing_docs, reason = "the headers document it")] pub const $name: $kind = $value;)*

        /// All of them by name; negative numbers are those of 64 bits.
        pub const NUMBERS: &[(&str, u64)] = &[$((stringify!($name), $name as u64)),*];
    };
}

numbers! {
    FI_MSG: u64 = 1 << 1;
    FI_RMA: u64 = 1 << 2;
    FI_TAGGED: u64 = 1 << 3;
    FI_READ: u64 = 1 << 8;
    FI_WRITE: u64 = 1 << 9;
    FI_RECV: u64 = 1 << 10;
    FI_SEND: u64 = 1 << 11;
    FI_TRANSMIT: u64 = 1 << 11;
    FI_REMOTE_READ: u64 = 1 << 12;
    FI_REMOTE_WRITE: u64 = 1 << 13;
    FI_MULTI_RECV: u64 = 1 << 16;
    FI_REMOTE_CQ_DATA: u64 = 1 << 17;
    FI_PEEK: u64 = 1 << 19;
    FI_COMPLETION: u64 = 1 << 24;
    FI_INJECT: u64 = 1 << 25;
    FI_DELIVERY_COMPLETE: u64 = 1 << 28;
    FI_EVENT: u64 = 1 << 24;
    FI_COMMIT_COMPLETE: u64 = 1 << 30;
    FI_MATCH_COMPLETE: u64 = 1 << 31;
    FI_LOCAL_COMM: u64 = 1 << 51;
    FI_REMOTE_COMM: u64 = 1 << 52;
    FI_CONTEXT2: u64 = 1 << 52;
    FI_SOURCE: u64 = 1 << 57;
    FI_DISCARD: u64 = 1 << 58;
    FI_CLAIM: u64 = 1 << 59;
    FI_CONTEXT: u64 = 1 << 59;
    FI_DIRECTED_RECV: u64 = 1 << 59;
    FI_SELECTIVE_COMPLETION: u64 = 1 << 59;
    FI_ORDER_SAS: u64 = 1 << 8;

    FI_EP_RDM: c_int = 3;
    FI_THREAD_SAFE: c_int = 1;
    FI_THREAD_DOMAIN: c_int = 3;
    FI_PROGRESS_MANUAL: c_int = 2;
    FI_RM_ENABLED: c_int = 2;
    FI_AV_TABLE: c_int = 2;
    FI_CQ_FORMAT_UNSPEC: c_int = 0;
    FI_CQ_FORMAT_CONTEXT: c_int = 1;
    FI_CQ_FORMAT_MSG: c_int = 2;
    FI_CQ_FORMAT_DATA: c_int = 3;
    FI_CQ_FORMAT_TAGGED: c_int = 4;
    FI_CQ_COND_NONE: c_int = 0;
    FI_CNTR_EVENTS_COMP: c_int = 0;
    FI_WAIT_NONE: c_int = 0;
    FI_WAIT_UNSPEC: c_int = 1;
    FI_WAIT_FD: c_int = 3;
    FI_WAIT_YIELD: c_int = 5;
    FI_GETWAIT: c_int = 5;
    FI_ENABLE: c_int = 6;

    FI_MR_BASIC: c_int = 1;
    FI_MR_SCALABLE: c_int = 2;
    FI_MR_LOCAL: c_int = 1 << 2;
    FI_MR_VIRT_ADDR: c_int = 1 << 4;
    FI_MR_ALLOCATED: c_int = 1 << 5;
    FI_MR_PROV_KEY: c_int = 1 << 6;
    FI_MR_ENDPOINT: c_int = 1 << 9;

    FI_CLASS_FABRIC: usize = 1;
    FI_CLASS_DOMAIN: usize = 2;
    FI_CLASS_EP: usize = 3;
    FI_CLASS_AV: usize = 11;
    FI_CLASS_MR: usize = 12;
    FI_CLASS_EQ: usize = 13;
    FI_CLASS_CQ: usize = 14;
    FI_CLASS_CNTR: usize = 15;

    FI_ENOENT: isize = 2;
    FI_EAGAIN: isize = 11;
    FI_ENOMEM: isize = 12;
    FI_ENODEV: isize = 19;
    FI_EINVAL: isize = 22;
    FI_ENOSPC: isize = 28;
    FI_ENOSYS: isize = 38;
    FI_ENOMSG: isize = 42;
    FI_ENODATA: isize = 61;
    FI_EMSGSIZE: isize = 90;
    FI_ETIMEDOUT: isize = 110;
    FI_EHOSTUNREACH: isize = 113;
    FI_ECANCELED: isize = 125;
    FI_ENOKEY: isize = 266;
    FI_ETOOSMALL: isize = 257;
    FI_EAVAIL: isize = 259;
    FI_ENOCQ: isize = 263;
    FI_ETRUNC: isize = 265;
    FI_ENOAV: isize = 267;

    FI_ADDR_UNSPEC: u64 = u64::MAX;
}

/// A version as libfabric writes it.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}
