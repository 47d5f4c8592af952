//! Objects and their tables of functions.
//!
//! # Invariant
//! Every function that is called or provided has the arguments and the result of the headers; the others are [`Missing`], which
//! hold their place and read no argument. An object begins with its [`Fid`].

#![allow(unsafe_code, reason = "declares functions of C")]

use crate::*;
use std::ffi::{c_char, c_int, c_void};

/// A function that is not called, or one that reads no argument.
pub type Missing = extern "C" fn() -> isize;

/// Arguments of a registration: domain, memory, length, access, offset, requested key, flags.
pub type Register =
    unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut Mr, *mut c_void) -> c_int;
/// Arguments of a registration of pieces of memory: domain, pieces, count, access, offset, requested key, flags.
pub type RegisterPieces =
    unsafe extern "C" fn(*mut Fid, *const IoVec, usize, u64, u64, u64, u64, *mut *mut Mr, *mut c_void) -> c_int;
/// Arguments of a receive: endpoint, memory, length, descriptor, source, context.
pub type Receive = unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize;
/// Arguments of a send: endpoint, memory, length, descriptor, destination, context.
pub type SendTo = unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize;
/// Arguments of a send or receive of pieces: endpoint, pieces, descriptors, count, address, context.
pub type Pieces = unsafe extern "C" fn(*mut Ep, *const IoVec, *mut *mut c_void, usize, u64, *mut c_void) -> isize;
/// Arguments of a receive: endpoint, memory, length, descriptor, source, tag, ignored bits of the tag, context.
pub type TaggedReceive =
    unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize;
/// Arguments of a send: endpoint, memory, length, descriptor, destination, tag, context.
pub type TaggedSend = unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> isize;
/// Arguments of a remote read or write: endpoint, memory, length, descriptor, peer, place, key, context. A read writes the
/// memory.
pub type Access = unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize;
/// Arguments of a remote read or write of pieces: endpoint, pieces, descriptors, count, peer, place, key, context.
pub type AccessPieces =
    unsafe extern "C" fn(*mut Ep, *const IoVec, *mut *mut c_void, usize, u64, u64, u64, *mut c_void) -> isize;

structures! {
    "struct fi_provider" Provider {
        version: u32,
        fi_version: u32,
        context: [usize; 4],
        name: *const c_char,
        getinfo: unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
        fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, *mut c_void) -> c_int,
        cleanup: Missing,
    }

    "struct fid" Fid {
        fclass: usize,
        context: *mut c_void,
        ops: *const FidOps,
    }

    "struct fi_ops" FidOps {
        size: usize,
        close: unsafe extern "C" fn(*mut Fid) -> c_int,
        bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
        control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
        ops_open: Missing,
        tostr: Missing,
        ops_set: Missing,
    }

    "struct fid_fabric" Fabric {
        fid: Fid,
        ops: *const FabricOps,
        api_version: u32,
    }

    "struct fi_ops_fabric" FabricOps {
        size: usize,
        domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
        passive_ep: Missing,
        eq_open: unsafe extern "C" fn(*mut Fabric, *mut c_void, *mut *mut Eq, *mut c_void) -> c_int,
        wait_open: Missing,
        trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
        domain2: Missing,
    }

    "struct fid_domain" Domain {
        fid: Fid,
        ops: *const DomainOps,
        mr: *const MrOps,
    }

    "struct fi_ops_domain" DomainOps {
        size: usize,
        av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
        cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
        endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
        scalable_ep: Missing,
        cntr_open: unsafe extern "C" fn(*mut Domain, *mut CntrAttr, *mut *mut Cntr, *mut c_void) -> c_int,
        poll_open: Missing,
        stx_ctx: Missing,
        srx_ctx: Missing,
        query_atomic: Missing,
        query_collective: Missing,
        endpoint2: Missing,
    }

    "struct fid_mr" Mr {
        fid: Fid,
        mem_desc: *mut c_void,
        key: u64,
    }

    "struct fi_ops_mr" MrOps {
        size: usize,
        reg: Register,
        regv: RegisterPieces,
        regattr: unsafe extern "C" fn(*mut Fid, *const MrAttr, u64, *mut *mut Mr) -> c_int,
    }

    "struct fid_av" Av {
        fid: Fid,
        ops: *const AvOps,
    }

    "struct fi_ops_av" AvOps {
        size: usize,
        insert: unsafe extern "C" fn(*mut Av, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
        insertsvc: Missing,
        insertsym: Missing,
        remove: unsafe extern "C" fn(*mut Av, *mut u64, usize, u64) -> c_int,
        lookup: unsafe extern "C" fn(*mut Av, u64, *mut c_void, *mut usize) -> c_int,
        straddr: unsafe extern "C" fn(*mut Av, *const c_void, *mut c_char, *mut usize) -> *const c_char,
        av_set: Missing,
    }

    "struct fid_cq" Cq {
        fid: Fid,
        ops: *const CqOps,
    }

    "struct fi_ops_cq" CqOps {
        size: usize,
        read: unsafe extern "C" fn(*mut Cq, *mut c_void, usize) -> isize,
        readfrom: unsafe extern "C" fn(*mut Cq, *mut c_void, usize, *mut u64) -> isize,
        readerr: unsafe extern "C" fn(*mut Cq, *mut CqError, u64) -> isize,
        sread: unsafe extern "C" fn(*mut Cq, *mut c_void, usize, *const c_void, c_int) -> isize,
        sreadfrom: unsafe extern "C" fn(*mut Cq, *mut c_void, usize, *mut u64, *const c_void, c_int) -> isize,
        signal: unsafe extern "C" fn(*mut Cq) -> c_int,
        strerror: unsafe extern "C" fn(*mut Cq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
    }

    "struct fid_cntr" Cntr {
        fid: Fid,
        ops: *const CntrOps,
    }

    "struct fi_ops_cntr" CntrOps {
        size: usize,
        read: unsafe extern "C" fn(*mut Cntr) -> u64,
        readerr: unsafe extern "C" fn(*mut Cntr) -> u64,
        add: unsafe extern "C" fn(*mut Cntr, u64) -> c_int,
        set: unsafe extern "C" fn(*mut Cntr, u64) -> c_int,
        wait: unsafe extern "C" fn(*mut Cntr, u64, c_int) -> c_int,
        adderr: unsafe extern "C" fn(*mut Cntr, u64) -> c_int,
        seterr: unsafe extern "C" fn(*mut Cntr, u64) -> c_int,
    }

    "struct fid_eq" Eq {
        fid: Fid,
        ops: *const EqOps,
    }

    "struct fi_ops_eq" EqOps {
        size: usize,
        read: Missing,
        readerr: Missing,
        write: Missing,
        sread: Missing,
        strerror: Missing,
    }

    "struct fid_ep" Ep {
        fid: Fid,
        ops: *const EpOps,
        cm: *const CmOps,
        msg: *const MsgOps,
        rma: *const RmaOps,
        tagged: *const TaggedOps,
        atomic: *const AtomicOps,
        collective: *const CollectiveOps,
    }

    "struct fi_ops_ep" EpOps {
        size: usize,
        cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize,
        getopt: Missing,
        setopt: Missing,
        tx_ctx: Missing,
        rx_ctx: Missing,
        rx_size_left: Missing,
        tx_size_left: Missing,
    }

    "struct fi_ops_cm" CmOps {
        size: usize,
        setname: Missing,
        getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
        getpeer: Missing,
        connect: Missing,
        listen: Missing,
        accept: Missing,
        reject: Missing,
        shutdown: Missing,
        join: Missing,
    }

    "struct fi_ops_msg" MsgOps {
        size: usize,
        recv: Receive,
        recvv: Pieces,
        recvmsg: unsafe extern "C" fn(*mut Ep, *const Msg, u64) -> isize,
        send: SendTo,
        sendv: Pieces,
        sendmsg: unsafe extern "C" fn(*mut Ep, *const Msg, u64) -> isize,
        inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64) -> isize,
        senddata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> isize,
        injectdata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64) -> isize,
    }

    "struct fi_ops_tagged" TaggedOps {
        size: usize,
        recv: TaggedReceive,
        recvv: unsafe extern "C" fn(*mut Ep, *const IoVec, *mut *mut c_void, usize, u64, u64, u64, *mut c_void) -> isize,
        recvmsg: unsafe extern "C" fn(*mut Ep, *const MsgTagged, u64) -> isize,
        send: TaggedSend,
        sendv: unsafe extern "C" fn(*mut Ep, *const IoVec, *mut *mut c_void, usize, u64, u64, *mut c_void) -> isize,
        sendmsg: unsafe extern "C" fn(*mut Ep, *const MsgTagged, u64) -> isize,
        inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64) -> isize,
        senddata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize,
        injectdata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64) -> isize,
    }

    "struct fi_ops_rma" RmaOps {
        size: usize,
        read: Access,
        readv: AccessPieces,
        readmsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> isize,
        write: Access,
        writev: AccessPieces,
        writemsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> isize,
        inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64) -> isize,
        writedata:
            unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, u64, u64, *mut c_void) -> isize,
        injectdata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64, u64) -> isize,
    }

    "struct fi_ops_atomic" AtomicOps {
        size: usize,
        write: Missing,
        writev: Missing,
        writemsg: Missing,
        inject: Missing,
        readwrite: Missing,
        readwritev: Missing,
        readwritemsg: Missing,
        compwrite: Missing,
        compwritev: Missing,
        compwritemsg: Missing,
        writevalid: Missing,
        readwritevalid: Missing,
        compwritevalid: Missing,
    }

    "struct fi_ops_collective" CollectiveOps {
        size: usize,
        barrier: Missing,
        broadcast: Missing,
        alltoall: Missing,
        allreduce: Missing,
        allgather: Missing,
        reduce_scatter: Missing,
        reduce: Missing,
        scatter: Missing,
        gather: Missing,
        msg: Missing,
        barrier2: Missing,
    }
}
