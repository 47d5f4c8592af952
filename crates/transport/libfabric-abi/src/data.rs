//! Messages, pieces of memory, and completions.

use std::ffi::{c_int, c_void};

structures! {
    #[derive(Clone, Copy)]
    "struct iovec" IoVec {
        iov_base: *mut c_void,
        iov_len: usize,
    }

    "struct fi_msg" Msg {
        msg_iov: *const IoVec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        context: *mut c_void,
        data: u64,
    }

    "struct fi_msg_tagged" MsgTagged {
        msg_iov: *const IoVec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        tag: u64,
        ignore: u64,
        context: *mut c_void,
        data: u64,
    }

    "struct fi_rma_iov" RmaIov {
        addr: u64,
        len: usize,
        key: u64,
    }

    "struct fi_msg_rma" MsgRma {
        msg_iov: *const IoVec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: *const RmaIov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }

    /// The shorter formats are its beginning. Pointers are numbers here, and are not followed.
    #[derive(Clone, Copy, Debug, Default)]
    "struct fi_cq_tagged_entry" CqEntry {
        op_context: usize,
        flags: u64,
        len: usize,
        buf: usize,
        data: u64,
        tag: u64,
    }

    #[derive(Clone, Copy, Debug, Default)]
    "struct fi_cq_err_entry" CqError {
        op_context: usize,
        flags: u64,
        len: usize,
        buf: usize,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: usize,
        err_data_size: usize,
    }
}

/// An error with room for what later versions append, for a program that reads one.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CqErrorRoom {
    /// The error.
    pub error: CqError,
    /// The room.
    pub later: [u64; 4],
}
