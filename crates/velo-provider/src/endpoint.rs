//! The calls of an endpoint, and the entry of the library.
//!
//! # Safety
//! Every function gets an endpoint of this library, and pieces of memory that the program promises to keep until the
//! operation is complete. Memory is only named here; `evb_velo_device` copies it.

#![allow(unsafe_code, reason = "implements functions that C calls")]
#![allow(clippy::too_many_arguments, reason = "libfabric chooses the arguments")]

use crate::{
    abi::*,
    domain::{self, Endpoint, Send, State, wanted},
    engine::{Engine, Finished, Posted, TAGGED, WITH_DATA, WRITTEN, sent},
    info,
    objects::{self, Object, make, object, table},
};
use evb_velo_device::{Device, Envelope, NOTE_SPANS, Span};
use std::{
    ffi::{c_int, c_void},
    mem::ManuallyDrop,
    ptr::null,
    sync::MutexGuard,
};

/// A provider that never changes.
struct Entry(ManuallyDrop<Provider>);
// SAFETY: libfabric alone uses it, under its own lock.
unsafe impl Sync for Entry {}

static PROVIDER: Entry = Entry(ManuallyDrop::new(Provider {
    version: 1 << 16,
    fi_version: 1 << 16 | 17,
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

macro_rules! calls {
    ($($call:expr),* $(,)?) => { Table::new([$($call),*]) };
}

static CONTROL: Table<7> = calls![Call(cancel as *const c_void), NONE, NONE, NONE, NONE, NONE, NONE];
static NAMES: Table<9> = calls![NONE, Call(getname as *const c_void), NONE, NONE, NONE, NONE, NONE, NONE, NONE];
static MESSAGES: Table<9> = calls![
    Call(recv as *const c_void),
    Call(recvv as *const c_void),
    Call(recvmsg as *const c_void),
    Call(send as *const c_void),
    Call(sendv as *const c_void),
    Call(sendmsg as *const c_void),
    Call(inject as *const c_void),
    Call(senddata as *const c_void),
    Call(injectdata as *const c_void),
];
static TAGGED_MESSAGES: Table<9> = calls![
    Call(trecv as *const c_void),
    Call(trecvv as *const c_void),
    Call(trecvmsg as *const c_void),
    Call(tsend as *const c_void),
    Call(tsendv as *const c_void),
    Call(tsendmsg as *const c_void),
    Call(tinject as *const c_void),
    Call(tsenddata as *const c_void),
    Call(tinjectdata as *const c_void),
];
static REMOTE: Table<9> = calls![
    Call(read as *const c_void),
    Call(readv as *const c_void),
    Call(readmsg as *const c_void),
    Call(write as *const c_void),
    Call(writev as *const c_void),
    Call(writemsg as *const c_void),
    Call(rinject as *const c_void),
    Call(writedata as *const c_void),
    Call(rinjectdata as *const c_void),
];

/// `fi_endpoint`.
///
/// # Safety
/// Called by libfabric with a domain, the info of this provider and a place for the answer.
pub(crate) unsafe extern "C" fn open(
    domain: *mut Object,
    info: *const Info,
    place: *mut *mut Object,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    let (shared, tx, rx, caps) =
        unsafe { (object(domain).shared.clone(), (*info).tx_attr.as_ref(), (*info).rx_attr.as_ref(), (*info).caps) };
    let Ok(device) = Device::open(None) else { return -12 };
    let mut state = shared.lock();
    state.grants.iter().for_each(|grant| {
        device.lend(*grant);
    });
    let endpoint = Endpoint {
        engine: Engine::new(device),
        send_queue: None,
        receive_queue: None,
        send_selective: false,
        receive_selective: false,
        send_flags: tx.map_or(0, |tx| tx.op_flags),
        receive_flags: rx.map_or(0, |rx| rx.op_flags),
        vector: None,
        directed: caps & FI_DIRECTED_RECV != 0,
        counters: Vec::new(),
        peers: Vec::new(),
    };
    let number = domain::put(&mut state.endpoints, endpoint);
    drop(state);
    let tables =
        [table(&CONTROL), table(&NAMES), table(&MESSAGES), table(&REMOTE), table(&TAGGED_MESSAGES), null(), null()];
    // SAFETY: a place for the answer.
    unsafe { *place = make(CLASS_EP, context, &tables, shared, number) };
    0
}

unsafe extern "C" fn getname(fid: *mut Object, bytes: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: an endpoint, and a place with its length.
    unsafe {
        let this = object(fid);
        match this.shared.lock().endpoint(this.number) {
            Ok(endpoint) => objects::write_address(endpoint.engine.device.address(), bytes, length),
            Err(error) => error as c_int,
        }
    }
}

unsafe extern "C" fn cancel(fid: *mut Object, context: usize) -> isize {
    // SAFETY: an endpoint.
    let this = unsafe { object(fid) };
    let mut state = this.shared.lock();
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    if let Some((_, tagged)) = endpoint.engine.cancel(context) {
        let flags = FI_RECV | if tagged { FI_TAGGED } else { FI_MSG };
        let entry = CqEntry { context, flags, ..CqEntry::default() };
        endpoint.engine.finished.push(Finished { error: FI_ECANCELED, ..Finished::new(entry, true) });
        state.hand_out(this.number);
    }
    0
}

fn answer(result: Result<(), isize>) -> isize {
    result.err().unwrap_or(0)
}

/// # Safety
/// There are `count` pieces.
unsafe fn pieces<'a>(iov: *const Span, count: usize) -> Result<&'a [Span], isize> {
    match count {
        0 => Ok(&[]),
        // SAFETY: as the caller promises.
        1..=NOTE_SPANS => Ok(unsafe { std::slice::from_raw_parts(iov, count) }),
        _ => Err(-FI_EINVAL),
    }
}

/// # Safety
/// The pointer is an endpoint.
unsafe fn locked<'a>(ep: *mut Object) -> (MutexGuard<'a, State>, &'a Object) {
    // SAFETY: as the caller promises.
    let this = unsafe { object(ep) };
    (this.shared.lock(), this)
}

/// What a send is beside its bytes.
#[derive(Default)]
struct Words {
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
    context: usize,
    /// Flags of the operation; none if it goes by those of the endpoint.
    flags: Option<u64>,
    quiet: bool,
}

unsafe fn post(ep: *mut Object, spans: &[Span], words: &Words) -> isize {
    // SAFETY: an endpoint.
    let (mut state, this) = unsafe { locked(ep) };
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let flags = words.flags.unwrap_or(endpoint.send_flags);
    let wanted = !words.quiet && wanted(endpoint.send_selective, flags);
    let bits = if words.tag.is_some() { TAGGED } else { 0 } | if words.data.is_some() { WITH_DATA } else { 0 };
    let length = spans.iter().map(|span| span.length as u64).sum();
    if (words.quiet || flags & FI_INJECT != 0) && length > evb_velo_device::BLOCK_BYTES as u64 {
        return -FI_EMSGSIZE;
    }
    let (tag, data) = (words.tag.unwrap_or(0), words.data.unwrap_or(0));
    let envelope = Envelope { length, tag, data, flags: bits };
    let finished = Finished::new(sent(words.context, words.tag.is_some()), wanted);
    answer(state.send(this.number, &Send { to: words.to, envelope, spans, finished }))
}

unsafe fn take(
    ep: *mut Object,
    spans: &[Span],
    tagged: bool,
    from: u64,
    tag: u64,
    ignore: u64,
    context: usize,
    flags: Option<u64>,
) -> isize {
    // SAFETY: an endpoint.
    let (mut state, this) = unsafe { locked(ep) };
    let source = state.source(this.number, from);
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let wanted = wanted(endpoint.receive_selective, flags.unwrap_or(endpoint.receive_flags));
    let posted = Posted { spans: spans.to_vec(), source, tag, ignore, context, wanted };
    let flags = flags.unwrap_or(0);
    let discard = flags & FI_DISCARD != 0;
    if flags & FI_PEEK != 0 {
        endpoint.engine.progress();
        // Open MPI takes only an error of the queue for "no message", and not the result of the call.
        if !endpoint.engine.peek(&posted, flags & FI_CLAIM != 0, discard) {
            let entry = CqEntry { context, flags: FI_RECV | FI_TAGGED, tag, ..CqEntry::default() };
            endpoint.engine.finished.push(Finished { error: FI_ENOMSG, ..Finished::new(entry, true) });
        }
        state.hand_out(this.number);
        return 0;
    }
    if tagged && flags & FI_CLAIM != 0 {
        if !endpoint.engine.take_claimed(&posted, discard) {
            return -FI_EINVAL;
        }
    } else {
        endpoint.engine.receive(tagged, posted);
    }
    state.hand_out(this.number);
    0
}

fn one(address: usize, length: usize) -> [Span; 1] {
    [Span { address, length }]
}

unsafe extern "C" fn recv(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    from: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { take(ep, &one(buf, len), false, from, 0, u64::MAX, context, None) }
}

unsafe extern "C" fn recvv(
    ep: *mut Object,
    iov: *const Span,
    _d: *mut c_void,
    count: usize,
    from: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| take(ep, spans, false, from, 0, u64::MAX, context, None)) }
}

unsafe extern "C" fn recvmsg(ep: *mut Object, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let spans = pieces(msg.iov, msg.count);
        spans.map_or_else(
            |e| e,
            |spans| take(ep, spans, false, msg.addr, 0, u64::MAX, msg.context as usize, Some(flags)),
        )
    }
}

unsafe extern "C" fn trecv(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { take(ep, &one(buf, len), true, from, tag, ignore, context, None) }
}

unsafe extern "C" fn trecvv(
    ep: *mut Object,
    iov: *const Span,
    _d: *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| take(ep, spans, true, from, tag, ignore, context, None)) }
}

unsafe extern "C" fn trecvmsg(ep: *mut Object, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let spans = pieces(msg.iov, msg.count);
        spans
            .map_or_else(|e| e, |s| take(ep, s, true, msg.addr, msg.tag, msg.ignore, msg.context as usize, Some(flags)))
    }
}

unsafe extern "C" fn send(ep: *mut Object, buf: usize, len: usize, _d: *mut c_void, to: u64, context: usize) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, context, ..Words::default() }) }
}

unsafe extern "C" fn sendv(
    ep: *mut Object,
    iov: *const Span,
    _d: *mut c_void,
    count: usize,
    to: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        pieces(iov, count).map_or_else(|e| e, |spans| post(ep, spans, &Words { to, context, ..Words::default() }))
    }
}

fn with_data(flags: u64, data: u64) -> Option<u64> {
    (flags & FI_REMOTE_CQ_DATA != 0).then_some(data)
}

unsafe extern "C" fn sendmsg(ep: *mut Object, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let data = with_data(flags, msg.data);
        let words = Words { to: msg.addr, data, context: msg.context as usize, flags: Some(flags), ..Words::default() };
        pieces(msg.iov, msg.count).map_or_else(|e| e, |spans| post(ep, spans, &words))
    }
}

unsafe extern "C" fn inject(ep: *mut Object, buf: usize, len: usize, to: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, quiet: true, ..Words::default() }) }
}

unsafe extern "C" fn senddata(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    data: u64,
    to: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, data: Some(data), context, ..Words::default() }) }
}

unsafe extern "C" fn injectdata(ep: *mut Object, buf: usize, len: usize, data: u64, to: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, data: Some(data), quiet: true, ..Words::default() }) }
}

unsafe extern "C" fn tsend(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    to: u64,
    tag: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, tag: Some(tag), context, ..Words::default() }) }
}

unsafe extern "C" fn tsendv(
    ep: *mut Object,
    iov: *const Span,
    _d: *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: usize,
) -> isize {
    let words = Words { to, tag: Some(tag), context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| post(ep, spans, &words)) }
}

unsafe extern "C" fn tsendmsg(ep: *mut Object, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        let (tag, data, context) = (Some(msg.tag), with_data(flags, msg.data), msg.context as usize);
        let words = Words { to: msg.addr, tag, data, context, flags: Some(flags), quiet: false };
        pieces(msg.iov, msg.count).map_or_else(|e| e, |spans| post(ep, spans, &words))
    }
}

unsafe extern "C" fn tinject(ep: *mut Object, buf: usize, len: usize, to: u64, tag: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, tag: Some(tag), quiet: true, ..Words::default() }) }
}

unsafe extern "C" fn tsenddata(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &Words { to, tag: Some(tag), data: Some(data), context, ..Words::default() }) }
}

unsafe extern "C" fn tinjectdata(ep: *mut Object, buf: usize, len: usize, data: u64, to: u64, tag: u64) -> isize {
    let words = Words { to, tag: Some(tag), data: Some(data), quiet: true, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { post(ep, &one(buf, len), &words) }
}

/// Reads or writes remote memory; data for the peer's queue follow as a notice.
unsafe fn access(ep: *mut Object, kind: u64, spans: &[Span], words: &Words, place: u64, key: u64) -> isize {
    // SAFETY: an endpoint.
    let (mut state, this) = unsafe { locked(ep) };
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL };
    let wanted = !words.quiet && wanted(endpoint.send_selective, words.flags.unwrap_or(endpoint.send_flags));
    let entry = CqEntry { context: words.context, flags: FI_RMA | kind, ..CqEntry::default() };
    let (length, data) = (spans.iter().map(|span| span.length as u64).sum(), words.data.unwrap_or(0));
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

unsafe extern "C" fn read(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    to: u64,
    place: u64,
    key: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { access(ep, FI_READ, &one(buf, len), &Words { to, context, ..Words::default() }, place, key) }
}

unsafe extern "C" fn readv(
    ep: *mut Object,
    iov: *const Span,
    _d: *mut c_void,
    count: usize,
    to: u64,
    place: u64,
    key: u64,
    context: usize,
) -> isize {
    let words = Words { to, context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| access(ep, FI_READ, spans, &words, place, key)) }
}

unsafe fn access_msg(ep: *mut Object, kind: u64, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        let msg = &*msg;
        if msg.rma_count != 1 {
            return -FI_EINVAL;
        }
        let data = with_data(flags, msg.data);
        let words = Words { to: msg.addr, data, context: msg.context as usize, flags: Some(flags), ..Words::default() };
        let target = &*msg.rma_iov;
        pieces(msg.iov, msg.count).map_or_else(|e| e, |spans| access(ep, kind, spans, &words, target.addr, target.key))
    }
}

unsafe extern "C" fn readmsg(ep: *mut Object, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { access_msg(ep, FI_READ, msg, flags) }
}

unsafe extern "C" fn write(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    to: u64,
    place: u64,
    key: u64,
    context: usize,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { access(ep, FI_WRITE, &one(buf, len), &Words { to, context, ..Words::default() }, place, key) }
}

unsafe extern "C" fn writev(
    ep: *mut Object,
    iov: *const Span,
    _d: *mut c_void,
    count: usize,
    to: u64,
    place: u64,
    key: u64,
    context: usize,
) -> isize {
    let words = Words { to, context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { pieces(iov, count).map_or_else(|e| e, |spans| access(ep, FI_WRITE, spans, &words, place, key)) }
}

unsafe extern "C" fn writemsg(ep: *mut Object, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { access_msg(ep, FI_WRITE, msg, flags) }
}

unsafe extern "C" fn rinject(ep: *mut Object, buf: usize, len: usize, to: u64, place: u64, key: u64) -> isize {
    // SAFETY: as the caller promises.
    unsafe { access(ep, FI_WRITE, &one(buf, len), &Words { to, quiet: true, ..Words::default() }, place, key) }
}

unsafe extern "C" fn writedata(
    ep: *mut Object,
    buf: usize,
    len: usize,
    _d: *mut c_void,
    data: u64,
    to: u64,
    place: u64,
    key: u64,
    context: usize,
) -> isize {
    let words = Words { to, data: Some(data), context, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { access(ep, FI_WRITE, &one(buf, len), &words, place, key) }
}

unsafe extern "C" fn rinjectdata(
    ep: *mut Object,
    buf: usize,
    len: usize,
    data: u64,
    to: u64,
    place: u64,
    key: u64,
) -> isize {
    let words = Words { to, data: Some(data), quiet: true, ..Words::default() };
    // SAFETY: as the caller promises.
    unsafe { access(ep, FI_WRITE, &one(buf, len), &words, place, key) }
}
