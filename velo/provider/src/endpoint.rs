//! The calls of an endpoint, and the entry of the library.
//!
//! # Safety
//! Every function gets an endpoint of this library, and pieces of memory that the program promises to keep until the
//! operation is complete. Memory is only named here; `evb_velo_device` copies it.

#![allow(unsafe_code, reason = "implements functions that C calls")]
#![allow(clippy::too_many_arguments, reason = "libfabric chooses the arguments")]

use crate::{
    domain::{self, Endpoint, Send, State, wanted},
    engine::{Engine, Finished, Posted, TAGGED, WITH_DATA, WRITTEN, sent},
    info,
    lane::Lane,
    objects::{self, Object, make, missing, nothing, object, table},
};
use evb_libfabric_abi::*;
use evb_velo_device::{DeviceError, Envelope, NOTE_SPANS, Span};
use std::{
    ffi::{c_int, c_void},
    mem::ManuallyDrop,
    ptr::null_mut,
    sync::MutexGuard,
};

/// A provider that never changes.
struct Entry(ManuallyDrop<Provider>);
// SAFETY: libfabric alone uses it, under its own lock.
unsafe impl Sync for Entry {}

static PROVIDER: Entry = Entry(ManuallyDrop::new(Provider {
    version: 1 << 16,
    fi_version: info::INTERFACE,
    context: [0; 4],
    name: info::NAME.as_ptr(),
    getinfo: info::getinfo,
    fabric: objects::fabric,
    cleanup: nothing,
}));

/// The entry that libfabric looks for.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported to C")]
pub extern "C" fn fi_prov_ini() -> *mut c_void {
    // libfabric keeps notes in `context`, so it gets a copy that can be written.
    // SAFETY: the structure holds plain data and a name that lives as long as the library.
    let copy: Provider = unsafe { std::ptr::read(&raw const *PROVIDER.0) };
    Box::into_raw(Box::new(copy)).cast()
}

static CONTROL: EpOps = EpOps {
    size: size_of::<EpOps>(),
    cancel,
    getopt: missing,
    setopt: missing,
    tx_ctx: missing,
    rx_ctx: missing,
    rx_size_left: missing,
    tx_size_left: missing,
};
static NAMES: CmOps = CmOps {
    size: size_of::<CmOps>(),
    setname: missing,
    getname,
    getpeer: missing,
    connect: missing,
    listen: missing,
    accept: missing,
    reject: missing,
    shutdown: missing,
    join: missing,
};
static MESSAGES: MsgOps =
    MsgOps { size: size_of::<MsgOps>(), recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata };
static TAGGED_MESSAGES: TaggedOps = TaggedOps {
    size: size_of::<TaggedOps>(),
    recv: trecv,
    recvv: trecvv,
    recvmsg: trecvmsg,
    send: tsend,
    sendv: tsendv,
    sendmsg: tsendmsg,
    inject: tinject,
    senddata: tsenddata,
    injectdata: tinjectdata,
};
static ATOMIC: AtomicOps = AtomicOps {
    size: size_of::<AtomicOps>(),
    write: missing,
    writev: missing,
    writemsg: missing,
    inject: missing,
    readwrite: missing,
    readwritev: missing,
    readwritemsg: missing,
    compwrite: missing,
    compwritev: missing,
    compwritemsg: missing,
    writevalid: missing,
    readwritevalid: missing,
    compwritevalid: missing,
};
static COLLECTIVE: CollectiveOps = CollectiveOps {
    size: size_of::<CollectiveOps>(),
    barrier: missing,
    broadcast: missing,
    alltoall: missing,
    allreduce: missing,
    allgather: missing,
    reduce_scatter: missing,
    reduce: missing,
    scatter: missing,
    gather: missing,
    msg: missing,
    barrier2: missing,
};
static REMOTE: RmaOps = RmaOps {
    size: size_of::<RmaOps>(),
    read: access::<FI_READ>,
    readv: access_pieces::<FI_READ>,
    readmsg: access_msg::<FI_READ>,
    write: access::<FI_WRITE>,
    writev: access_pieces::<FI_WRITE>,
    writemsg: access_msg::<FI_WRITE>,
    inject: rinject,
    writedata,
    injectdata: rinjectdata,
};

/// `fi_endpoint`.
///
/// # Safety
/// Called by libfabric with a domain, the info of this provider and a place for the answer.
pub(crate) unsafe extern "C" fn open(
    domain: *mut Domain,
    info: *mut Info,
    place: *mut *mut Ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    let (shared, tx, rx, caps) =
        unsafe { (object(domain).shared.clone(), (*info).tx_attr.as_ref(), (*info).rx_attr.as_ref(), (*info).caps) };
    let mut lane = match Lane::open() {
        Ok(lane) => lane,
        Err(error) => return refused(&error),
    };
    let mut state = shared.lock();
    state.grants.iter().for_each(|grant| lane.lend(*grant));
    let endpoint = Endpoint {
        engine: Engine::new(lane),
        send_queue: None,
        receive_queue: None,
        send_selective: false,
        receive_selective: false,
        send_flags: tx.map_or(0, |tx| tx.op_flags),
        receive_flags: rx.map_or(0, |rx| rx.op_flags),
        vector: None,
        directions: if caps & (FI_SEND | FI_RECV) == 0 { FI_SEND | FI_RECV } else { caps },
        directed: caps & FI_DIRECTED_RECV != 0,
        counters: Vec::new(),
        peers: Vec::new(),
    };
    let number = domain::put(&mut state.endpoints, endpoint);
    drop(state);
    let tables = [
        table(&CONTROL),
        table(&NAMES),
        table(&MESSAGES),
        table(&REMOTE),
        table(&TAGGED_MESSAGES),
        table(&ATOMIC),
        table(&COLLECTIVE),
    ];
    // SAFETY: a place for the answer.
    unsafe { *place = make(FI_CLASS_EP, context, &tables, shared, number) };
    0
}

/// The error of an endpoint that has no way for its messages.
fn refused(error: &DeviceError) -> c_int {
    let Some(name) = info::hardware() else { return -FI_ENOMEM as c_int };
    eprintln!("velo: {}={name}: {error}", info::HARDWARE);
    -FI_ENODEV as c_int
}

unsafe extern "C" fn getname(fid: *mut Fid, bytes: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: an endpoint, and a place with its length.
    unsafe {
        let this = object(fid);
        match this.shared.lock().endpoint(this.number) {
            Ok(endpoint) => objects::write_address(endpoint.engine.lane.address(), bytes, length),
            Err(error) => error as c_int,
        }
    }
}

unsafe extern "C" fn cancel(fid: *mut Fid, context: *mut c_void) -> isize {
    let context = context as usize;
    // SAFETY: an endpoint.
    let this = unsafe { object(fid) };
    let mut state = this.shared.lock();
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let Some((_, tagged)) = endpoint.engine.cancel(context) else { return -FI_ENOENT };
    let flags = FI_RECV | if tagged { FI_TAGGED } else { FI_MSG };
    let entry = CqEntry { op_context: context, flags, ..CqEntry::default() };
    endpoint.engine.finished.push(Finished { error: FI_ECANCELED, ..Finished::new(entry, true) });
    state.hand_out(this.number);
    0
}

fn answer(result: Result<(), isize>) -> isize {
    result.err().unwrap_or(0)
}

/// # Safety
/// There are `count` pieces.
unsafe fn pieces<'a>(iov: *const IoVec, count: usize) -> Result<&'a [Span], isize> {
    match count {
        0 => Ok(&[]),
        // SAFETY: as the caller promises; both types are those of C's `iovec`.
        1..=NOTE_SPANS => Ok(unsafe { std::slice::from_raw_parts(iov.cast(), count) }),
        _ => Err(-FI_EINVAL),
    }
}

/// # Safety
/// The pointer is an endpoint.
unsafe fn locked<'a>(ep: *mut Ep) -> (MutexGuard<'a, State>, &'a Object) {
    // SAFETY: as the caller promises.
    let this = unsafe { object(ep) };
    (this.shared.lock(), this)
}

/// What a send is beside its bytes.
struct Words {
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
    context: *mut c_void,
    /// Flags of the operation; none if it goes by those of the endpoint.
    flags: Option<u64>,
    quiet: bool,
}

impl Default for Words {
    fn default() -> Self {
        Self { to: 0, tag: None, data: None, context: null_mut(), flags: None, quiet: false }
    }
}

unsafe fn post(ep: *mut Ep, spans: &[Span], words: &Words) -> isize {
    // SAFETY: an endpoint.
    let (mut state, this) = unsafe { locked(ep) };
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let flags = words.flags.unwrap_or(endpoint.send_flags);
    if flags & info::LATE_COMPLETION != 0 {
        return -FI_ENOSYS;
    }
    let wanted = !words.quiet && wanted(endpoint.send_selective, flags);
    let bits = if words.tag.is_some() { TAGGED } else { 0 } | if words.data.is_some() { WITH_DATA } else { 0 };
    let length = spans.iter().map(|span| span.length as u64).sum();
    if (words.quiet || flags & FI_INJECT != 0) && length > evb_velo_device::BLOCK_BYTES as u64 {
        return -FI_EMSGSIZE;
    }
    let (tag, data) = (words.tag.unwrap_or(0), words.data.unwrap_or(0));
    let envelope = Envelope { length, tag, data, flags: bits };
    let finished = Finished::new(sent(words.context as usize, words.tag.is_some()), wanted);
    answer(state.send(this.number, &Send { to: words.to, envelope, spans, finished }))
}

unsafe fn take(
    ep: *mut Ep,
    spans: &[Span],
    tagged: bool,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: an endpoint.
    let (mut state, this) = unsafe { locked(ep) };
    let context = context as usize;
    let source = state.source(this.number, from);
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let wanted = wanted(endpoint.receive_selective, flags.unwrap_or(endpoint.receive_flags));
    let posted = Posted { spans: spans.into(), source, tag, ignore, context, wanted };
    let flags = flags.unwrap_or(0);
    if flags & (FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD) != 0 {
        return take_specially(&mut state, this.number, posted, tagged, flags);
    }
    if !endpoint.engine.receive(tagged, posted) {
        return -FI_EAGAIN;
    }
    state.hand_out(this.number);
    0
}

/// Peeks at a message, or receives one that was claimed.
#[cold]
fn take_specially(state: &mut State, number: usize, posted: Posted, tagged: bool, flags: u64) -> isize {
    let Ok(endpoint) = state.endpoint(number) else { return -FI_EINVAL };
    if flags & FI_MULTI_RECV != 0 || !tagged {
        return -FI_ENOSYS;
    }
    let (claim, discard) = (flags & FI_CLAIM != 0, flags & FI_DISCARD != 0);
    if flags & FI_PEEK != 0 {
        endpoint.engine.progress();
        // Open MPI takes only an error of the queue for "no message", and not the result of the call.
        if !endpoint.engine.peek(&posted, claim, discard) {
            let (op_context, tag) = (posted.context, posted.tag);
            let entry = CqEntry { op_context, flags: FI_RECV | FI_TAGGED, tag, ..CqEntry::default() };
            let error = if endpoint.engine.lane.is_lost() { FI_EHOSTUNREACH } else { FI_ENOMSG };
            endpoint.engine.finished.push(Finished { error, ..Finished::new(entry, true) });
        }
    } else if claim {
        if !endpoint.engine.take_claimed(&posted, discard) {
            return -FI_EINVAL;
        }
    } else if !endpoint.engine.receive(tagged, posted) {
        return -FI_EAGAIN;
    }
    state.hand_out(number);
    0
}

fn one<T>(buf: *const T, length: usize) -> [Span; 1] {
    [Span { address: buf as usize, length }]
}

unsafe extern "C" fn recv(
    ep: *mut Ep,
    buf: *mut c_void,
    len: usize,
    _d: *mut c_void,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { take(ep, &one(buf, len), false, from, 0, u64::MAX, context, None) }
}

unsafe extern "C" fn recvv(
    ep: *mut Ep,
    iov: *const IoVec,
    _d: *mut *mut c_void,
    count: usize,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| take(ep, spans, false, from, 0, u64::MAX, context, None)) }
}

unsafe extern "C" fn recvmsg(ep: *mut Ep, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let spans = pieces(msg.msg_iov, msg.iov_count);
        spans.map_or_else(|e| e, |spans| take(ep, spans, false, msg.addr, 0, u64::MAX, msg.context, Some(flags)))
    }
}

unsafe extern "C" fn trecv(
    ep: *mut Ep,
    buf: *mut c_void,
    len: usize,
    _d: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { take(ep, &one(buf, len), true, from, tag, ignore, context, None) }
}

unsafe extern "C" fn trecvv(
    ep: *mut Ep,
    iov: *const IoVec,
    _d: *mut *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| take(ep, spans, true, from, tag, ignore, context, None)) }
}

unsafe extern "C" fn trecvmsg(ep: *mut Ep, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let spans = pieces(msg.msg_iov, msg.iov_count);
        spans.map_or_else(|e| e, |s| take(ep, s, true, msg.addr, msg.tag, msg.ignore, msg.context, Some(flags)))
    }
}

unsafe extern "C" fn send(
    ep: *mut Ep,
    buf: *const c_void,
    len: usize,
    _d: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, context, ..Words::default() }) }
}

unsafe extern "C" fn sendv(
    ep: *mut Ep,
    iov: *const IoVec,
    _d: *mut *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        pieces(iov, count).map_or_else(|e| e, |spans| post(ep, spans, &Words { to, context, ..Words::default() }))
    }
}

fn with_data(flags: u64, data: u64) -> Option<u64> {
    (flags & FI_REMOTE_CQ_DATA != 0).then_some(data)
}

unsafe extern "C" fn sendmsg(ep: *mut Ep, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let data = with_data(flags, msg.data);
        let words = Words { to: msg.addr, data, context: msg.context, flags: Some(flags), ..Words::default() };
        pieces(msg.msg_iov, msg.iov_count).map_or_else(|e| e, |spans| post(ep, spans, &words))
    }
}

unsafe extern "C" fn inject(ep: *mut Ep, buf: *const c_void, len: usize, to: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, quiet: true, ..Words::default() }) }
}

unsafe extern "C" fn senddata(
    ep: *mut Ep,
    buf: *const c_void,
    len: usize,
    _d: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, data: Some(data), context, ..Words::default() }) }
}

unsafe extern "C" fn injectdata(ep: *mut Ep, buf: *const c_void, len: usize, data: u64, to: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, data: Some(data), quiet: true, ..Words::default() }) }
}

unsafe extern "C" fn tsend(
    ep: *mut Ep,
    buf: *const c_void,
    len: usize,
    _d: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, tag: Some(tag), context, ..Words::default() }) }
}

unsafe extern "C" fn tsendv(
    ep: *mut Ep,
    iov: *const IoVec,
    _d: *mut *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    let words = Words { to, tag: Some(tag), context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| post(ep, spans, &words)) }
}

unsafe extern "C" fn tsendmsg(ep: *mut Ep, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let (tag, data, context) = (Some(msg.tag), with_data(flags, msg.data), msg.context);
        let words = Words { to: msg.addr, tag, data, context, flags: Some(flags), quiet: false };
        pieces(msg.msg_iov, msg.iov_count).map_or_else(|e| e, |spans| post(ep, spans, &words))
    }
}

unsafe extern "C" fn tinject(ep: *mut Ep, buf: *const c_void, len: usize, to: u64, tag: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, tag: Some(tag), quiet: true, ..Words::default() }) }
}

unsafe extern "C" fn tsenddata(
    ep: *mut Ep,
    buf: *const c_void,
    len: usize,
    _d: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, tag: Some(tag), data: Some(data), context, ..Words::default() }) }
}

unsafe extern "C" fn tinjectdata(ep: *mut Ep, buf: *const c_void, len: usize, data: u64, to: u64, tag: u64) -> isize {
    let words = Words { to, tag: Some(tag), data: Some(data), quiet: true, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &words) }
}

/// Reads or writes remote memory; data for the peer's queue follow as a notice.
unsafe fn remote(ep: *mut Ep, kind: u64, spans: &[Span], words: &Words, place: u64, key: u64) -> isize {
    // SAFETY: an endpoint.
    let (mut state, this) = unsafe { locked(ep) };
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let wanted = !words.quiet && wanted(endpoint.send_selective, words.flags.unwrap_or(endpoint.send_flags));
    let entry = CqEntry { op_context: words.context as usize, flags: FI_RMA | kind, ..CqEntry::default() };
    let (length, data) = (spans.iter().map(|span| span.length as u64).sum(), words.data.unwrap_or(0));
    if words.quiet && length > evb_velo_device::BLOCK_BYTES as u64 {
        return -FI_EMSGSIZE;
    }
    let envelope = Envelope { length: 0, tag: length, data, flags: WRITTEN };
    let send = Send { to: words.to, envelope, spans, finished: Finished::new(entry, wanted) };
    if words.data.is_none() {
        return answer(state.remote(this.number, this.shared.absolute, &send, place, key));
    }
    let silent = Send { finished: Finished::new(entry, false), ..send };
    let written = state.remote(this.number, this.shared.absolute, &silent, place, key);
    let notice = Send { spans: &[], finished: Finished::new(entry, wanted), ..silent };
    answer(written.and_then(|()| state.send(this.number, &notice)))
}

unsafe extern "C" fn access<const KIND: u64>(
    ep: *mut Ep,
    buf: *mut c_void,
    len: usize,
    _d: *mut c_void,
    to: u64,
    place: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { remote(ep, KIND, &one(buf, len), &Words { to, context, ..Words::default() }, place, key) }
}

unsafe extern "C" fn access_pieces<const KIND: u64>(
    ep: *mut Ep,
    iov: *const IoVec,
    _d: *mut *mut c_void,
    count: usize,
    to: u64,
    place: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let words = Words { to, context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| remote(ep, KIND, spans, &words, place, key)) }
}

unsafe extern "C" fn access_msg<const KIND: u64>(ep: *mut Ep, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        if msg.rma_iov_count != 1 {
            return -FI_EINVAL;
        }
        let data = with_data(flags, msg.data);
        let words = Words { to: msg.addr, data, context: msg.context, flags: Some(flags), ..Words::default() };
        let target = &*msg.rma_iov;
        let spans = pieces(msg.msg_iov, msg.iov_count);
        spans.map_or_else(|e| e, |spans| remote(ep, KIND, spans, &words, target.addr, target.key))
    }
}

unsafe extern "C" fn rinject(ep: *mut Ep, buf: *const c_void, len: usize, to: u64, place: u64, key: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { remote(ep, FI_WRITE, &one(buf, len), &Words { to, quiet: true, ..Words::default() }, place, key) }
}

unsafe extern "C" fn writedata(
    ep: *mut Ep,
    buf: *const c_void,
    len: usize,
    _d: *mut c_void,
    data: u64,
    to: u64,
    place: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let words = Words { to, data: Some(data), context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { remote(ep, FI_WRITE, &one(buf, len), &words, place, key) }
}

unsafe extern "C" fn rinjectdata(
    ep: *mut Ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    to: u64,
    place: u64,
    key: u64,
) -> isize {
    let words = Words { to, data: Some(data), quiet: true, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { remote(ep, FI_WRITE, &one(buf, len), &words, place, key) }
}
