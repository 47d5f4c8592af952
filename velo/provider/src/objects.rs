//! Fabric, domain, address vector, queues, counters and memory, as libfabric sees them.
//!
//! # Safety
//! Each object begins with the structure that the headers declare, comes from a box, and ends in `close`, which libfabric
//! calls once. Every function gets objects of the class whose table it is in.

#![allow(unsafe_code, reason = "implements functions that C calls")]

use crate::{
    domain::{self, Shared},
    endpoint, info,
    queue::{self, Counter, Queue},
};
use evb_libfabric_abi::*;
use evb_velo_device::{Address, GRANTS, Grant, Span};
use std::{
    ffi::{c_char, c_int, c_void},
    mem::offset_of,
    ptr::{null, null_mut},
    sync::Arc,
    time::{Duration, Instant},
};

/// Any object: what C sees, then the domain and the number in its list. Its third to eighth words are tables.
#[repr(C)]
pub(crate) struct Object {
    pub(crate) fid: Fid,
    pub(crate) tables: [*const c_void; 7],
    pub(crate) shared: Arc<Shared>,
    pub(crate) number: usize,
}

/// Empty reads of a queue before a reader gives its core to others between two reads.
const IDLE_READS: u32 = 2000;

/// A memory region: two words take the place of the tables of other objects.
const KEY_WORD: usize = 1;
/// The number of a region that peers may read or write.
const LENT: usize = 1;

/// Says that a call is not supported.
pub(crate) extern "C" fn missing() -> isize {
    -FI_ENOSYS
}

/// Agrees without doing anything.
pub(crate) extern "C" fn nothing() -> isize {
    0
}

static FIDS: FidOps =
    FidOps { size: size_of::<FidOps>(), close, bind, control, ops_open: missing, tostr: missing, ops_set: missing };
static FABRIC: FabricOps = FabricOps {
    size: size_of::<FabricOps>(),
    domain: domain_open,
    passive_ep: missing,
    eq_open,
    wait_open: missing,
    trywait,
    domain2: missing,
};
static DOMAIN: DomainOps = DomainOps {
    size: size_of::<DomainOps>(),
    av_open,
    cq_open,
    endpoint: endpoint::open,
    scalable_ep: missing,
    cntr_open,
    poll_open: missing,
    stx_ctx: missing,
    srx_ctx: missing,
    query_atomic: missing,
    query_collective: missing,
    endpoint2: missing,
};
static MEMORY: MrOps = MrOps { size: size_of::<MrOps>(), reg: mr_reg, regv: mr_regv, regattr: mr_regattr };
static VECTOR: AvOps = AvOps {
    size: size_of::<AvOps>(),
    insert: av_insert,
    insertsvc: missing,
    insertsym: missing,
    remove: av_remove,
    lookup: av_lookup,
    straddr: av_straddr,
    av_set: missing,
};
static QUEUE: CqOps = CqOps {
    size: size_of::<CqOps>(),
    read: cq_read,
    readfrom: cq_readfrom,
    readerr: cq_readerr,
    sread: cq_sread,
    sreadfrom: cq_sreadfrom,
    signal: cq_signal,
    strerror: cq_strerror,
};
static COUNTER: CntrOps = CntrOps {
    size: size_of::<CntrOps>(),
    read: cntr_read,
    readerr: cntr_readerr,
    add: cntr_add,
    set: cntr_set,
    wait: cntr_wait,
    adderr: cntr_adderr,
    seterr: cntr_seterr,
};
static EVENTS: EqOps = EqOps {
    size: size_of::<EqOps>(),
    read: eq_read,
    readerr: eq_read,
    write: missing,
    sread: eq_read,
    strerror: eq_text,
};

pub(crate) fn table<T>(table: &'static T) -> *const c_void {
    std::ptr::from_ref(table).cast()
}

/// A new object of type `T` in C, which owns it.
pub(crate) fn make<T>(
    fclass: usize,
    context: *mut c_void,
    tables: &[*const c_void],
    shared: Arc<Shared>,
    number: usize,
) -> *mut T {
    let mut all = [null(); 7];
    all[..tables.len()].copy_from_slice(tables);
    Box::into_raw(Box::new(Object { fid: Fid { fclass, context, ops: &FIDS }, tables: all, shared, number })).cast()
}

/// # Safety
/// The pointer is an object of this library.
pub(crate) unsafe fn object<'a, T>(pointer: *const T) -> &'a Object {
    // SAFETY: as the caller promises; objects are only written when they are made.
    unsafe { &*pointer.cast() }
}

pub(crate) unsafe extern "C" fn fabric(attr: *mut FabricAttr, fabric: *mut *mut Fabric, context: *mut c_void) -> c_int {
    // SAFETY: libfabric passes valid attributes with a name.
    let name = unsafe { (*attr).name };
    // SAFETY: as above.
    if name.is_null() || unsafe { std::ffi::CStr::from_ptr(name) } != info::NAME {
        return -FI_ENODATA as c_int;
    }
    let made = make(
        FI_CLASS_FABRIC,
        context,
        &[table(&FABRIC), info::INTERFACE as usize as *const c_void],
        Arc::new(Shared::new(false, false)),
        0,
    );
    // SAFETY: a place for the answer.
    unsafe { *fabric = made };
    0
}

unsafe extern "C" fn domain_open(
    _fabric: *mut Fabric,
    info: *mut Info,
    place: *mut *mut Domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: libfabric passes the info of this provider.
    let mode = unsafe { (*info).domain_attr.as_ref() }.map_or(0, |attr| attr.mr_mode);
    let shared = Arc::new(Shared::new(mode == FI_MR_BASIC, mode == FI_MR_BASIC));
    // SAFETY: a place for the answer.
    unsafe { *place = make(FI_CLASS_DOMAIN, context, &[table(&DOMAIN), table(&MEMORY)], shared, 0) };
    0
}

unsafe extern "C" fn eq_open(
    fabric: *mut Fabric,
    _attr: *mut c_void,
    place: *mut *mut Eq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an object, and a place for the answer.
    unsafe { *place = make(FI_CLASS_EQ, context, &[table(&EVENTS)], object(fabric).shared.clone(), 0) };
    0
}

/// There are no events.
extern "C" fn eq_read() -> isize {
    -FI_EAGAIN
}

extern "C" fn eq_text() -> isize {
    c"there are no events".as_ptr() as isize
}

unsafe extern "C" fn trywait(_fabric: *mut Fabric, _fids: *mut *mut Fid, _count: c_int) -> c_int {
    0
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the object comes from a box, and it is not used afterwards.
    let object = unsafe { Box::from_raw(fid.cast::<Object>()) };
    let number = object.number;
    let mut state = object.shared.lock();
    match object.fid.fclass {
        FI_CLASS_EP => state.endpoints[number] = None,
        FI_CLASS_AV => state.vectors[number] = None,
        FI_CLASS_CQ => state.queues[number] = None,
        FI_CLASS_CNTR => state.counters[number] = None,
        FI_CLASS_MR => {
            let key = object.tables[KEY_WORD] as u64;
            if number != LENT {
                return 0;
            }
            state.grants.retain(|grant| grant.key != key);
            state.endpoints.iter_mut().flatten().for_each(|endpoint| endpoint.engine.lane.take_back(key));
        }
        _ => {}
    }
    0
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: both are objects of this library.
    let (this, other) = unsafe { (object(fid), object(other)) };
    if this.fid.fclass != FI_CLASS_EP {
        return if other.fid.fclass == FI_CLASS_CNTR { -FI_ENOSYS as c_int } else { 0 };
    }
    let mut state = this.shared.lock();
    let Ok(endpoint) = state.endpoint(this.number) else { return -FI_EINVAL as c_int };
    match other.fid.fclass {
        FI_CLASS_AV => {
            endpoint.vector = Some(other.number);
            state.number_sources(other.number);
        }
        FI_CLASS_CQ => domain::bind_queue(endpoint, other.number, flags),
        FI_CLASS_CNTR if flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 => return -FI_ENOSYS as c_int,
        FI_CLASS_CNTR => endpoint.counters.push((other.number, flags)),
        FI_CLASS_EQ => {}
        _ => return -FI_EINVAL as c_int,
    }
    0
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, _argument: *mut c_void) -> c_int {
    // SAFETY: an object of this library.
    let this = unsafe { object(fid) };
    match this.fid.fclass {
        _ if command != FI_ENABLE => -FI_ENOSYS as c_int,
        FI_CLASS_EP => {
            let mut state = this.shared.lock();
            let enabled = state.endpoint(this.number).and_then(|endpoint| domain::enable(endpoint));
            enabled.map_or_else(|error| error as c_int, |()| 0)
        }
        _ => 0,
    }
}

unsafe extern "C" fn av_open(
    domain: *mut Domain,
    attr: *mut AvAttr,
    place: *mut *mut Av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a domain, and attributes or null.
    let (shared, attr) = unsafe { (object(domain).shared.clone(), attr.as_ref()) };
    if attr.is_some_and(|attr| attr.flags & FI_EVENT != 0 || !attr.name.is_null()) {
        return -FI_ENOSYS as c_int;
    }
    let number = domain::put(&mut shared.lock().vectors, Vec::new());
    // SAFETY: a place for the answer.
    unsafe { *place = make(FI_CLASS_AV, context, &[table(&VECTOR)], shared, number) };
    0
}

unsafe extern "C" fn av_insert(
    av: *mut Av,
    addresses: *const c_void,
    count: usize,
    numbers: *mut u64,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: an address vector.
    let av = unsafe { object(av) };
    let mut state = av.shared.lock();
    let Some(Some(vector)) = state.vectors.get_mut(av.number) else { return -FI_EINVAL as c_int };
    for index in 0..count {
        // SAFETY: there are `count` addresses, and as many numbers unless these are null.
        unsafe {
            if !numbers.is_null() {
                *numbers.add(index) = vector.len() as u64;
            }
            vector.push(Some(Address::from_bytes(*addresses.cast::<[u8; Address::BYTES]>().add(index))));
        }
    }
    state.number_sources(av.number);
    count as c_int
}

unsafe extern "C" fn av_remove(av: *mut Av, numbers: *mut u64, count: usize, _flags: u64) -> c_int {
    // SAFETY: an address vector.
    let av = unsafe { object(av) };
    let mut state = av.shared.lock();
    for index in 0..count {
        // SAFETY: there are `count` numbers.
        state.forget(av.number, unsafe { *numbers.add(index) } as usize);
    }
    0
}

unsafe extern "C" fn av_lookup(av: *mut Av, number: u64, bytes: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: an address vector.
    let av = unsafe { object(av) };
    let state = av.shared.lock();
    let vector = state.vectors.get(av.number).and_then(Option::as_ref);
    let Some(address) = vector.and_then(|vector| vector.get(number as usize).copied().flatten()) else {
        return -FI_EINVAL as c_int;
    };
    // SAFETY: the program gives a place with its length.
    unsafe { write_address(address, bytes, length) }
}

/// # Safety
/// The place has `*length` bytes.
pub(crate) unsafe fn write_address(address: Address, bytes: *mut c_void, length: *mut usize) -> c_int {
    let address = address.to_bytes();
    // SAFETY: as the caller promises.
    unsafe {
        let room = std::mem::replace(&mut *length, address.len());
        if !bytes.is_null() {
            std::ptr::copy_nonoverlapping(address.as_ptr(), bytes.cast(), room.min(address.len()));
        }
        if room < address.len() { -FI_ETOOSMALL as c_int } else { 0 }
    }
}

unsafe extern "C" fn av_straddr(
    _av: *mut Av,
    bytes: *const c_void,
    place: *mut c_char,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: an address of this provider, and a place with its length.
    unsafe {
        let Address { process, file, nonce } = Address::from_bytes(*bytes.cast());
        let text = format!("fi_velo://{process}/{file}/{nonce:x}\0");
        let room = std::mem::replace(&mut *length, text.len());
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), room.min(text.len()));
    }
    place
}

/// Returns true if the way to wait is to poll.
fn can_wait(object: c_int) -> bool {
    matches!(object, FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD)
}

unsafe extern "C" fn cq_open(
    domain: *mut Domain,
    attr: *mut CqAttr,
    place: *mut *mut Cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a domain, and valid attributes.
    let (shared, attr) = unsafe { (object(domain).shared.clone(), &*attr) };
    if !can_wait(attr.wait_obj) || attr.wait_cond != FI_CQ_COND_NONE {
        return -FI_ENOSYS as c_int;
    }
    let entry_bytes = match attr.format {
        FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_CONTEXT => offset_of!(CqEntry, flags),
        FI_CQ_FORMAT_MSG => offset_of!(CqEntry, buf),
        FI_CQ_FORMAT_DATA => offset_of!(CqEntry, tag),
        _ => size_of::<CqEntry>(),
    };
    let number = domain::put(&mut shared.lock().queues, Queue { entry_bytes, ..Queue::default() });
    // SAFETY: a place for the answer.
    unsafe { *place = make(FI_CLASS_CQ, context, &[table(&QUEUE)], shared, number) };
    0
}

unsafe extern "C" fn cq_read(cq: *mut Cq, entries: *mut c_void, count: usize) -> isize {
    // SAFETY: as the caller promises.
    unsafe { cq_readfrom(cq, entries, count, null_mut()) }
}

unsafe extern "C" fn cq_readfrom(cq: *mut Cq, entries: *mut c_void, count: usize, sources: *mut u64) -> isize {
    // SAFETY: a completion queue.
    let cq = unsafe { object(cq) };
    let mut state = cq.shared.lock();
    if state.queues[cq.number].as_ref().is_some_and(|queue| queue.entries.is_empty() && queue.errors.is_empty()) {
        state.progress();
    }
    let Some(queue) = &mut state.queues[cq.number] else { return -FI_EINVAL };
    if !queue.errors.is_empty() {
        return -FI_EAVAIL;
    }
    let taken = count.min(queue.entries.len());
    for index in 0..taken {
        let (entry, source) = queue.entries.pop_front().expect("an entry");
        // SAFETY: there is room for `count` entries of the queue's format, and for as many sources unless these are null.
        unsafe {
            let place = entries.cast::<u8>().add(index * queue.entry_bytes);
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(&entry).cast(), place, queue.entry_bytes);
            if !sources.is_null() {
                *sources.add(index) = source;
            }
        }
    }
    if taken > 0 || count == 0 {
        queue.idle = 0;
        return taken as isize;
    }
    queue.idle = queue.idle.saturating_add(1);
    let give_way = queue.idle > IDLE_READS;
    drop(state);
    if give_way {
        queue::give_way();
    }
    -FI_EAGAIN
}

unsafe extern "C" fn cq_readerr(cq: *mut Cq, place: *mut CqError, _flags: u64) -> isize {
    // SAFETY: a completion queue.
    let cq = unsafe { object(cq) };
    let mut state = cq.shared.lock();
    let Some(error) = state.queues[cq.number].as_mut().and_then(|queue| queue.errors.pop_front()) else {
        return -FI_EAGAIN;
    };
    // SAFETY: a place for an error; older interfaces end before `err_data_size`, which is not written.
    unsafe {
        let bytes = offset_of!(CqError, err_data);
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(&error).cast::<u8>(), place.cast(), bytes);
    }
    1
}

unsafe extern "C" fn cq_sread(
    cq: *mut Cq,
    entries: *mut c_void,
    count: usize,
    condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe { cq_sreadfrom(cq, entries, count, null_mut(), condition, timeout) }
}

/// Reads entries, and waits for the first: polls, then gives its time to others.
unsafe extern "C" fn cq_sreadfrom(
    cq: *mut Cq,
    entries: *mut c_void,
    count: usize,
    sources: *mut u64,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    let end = Instant::now() + Duration::from_millis(u64::try_from(timeout).unwrap_or(1 << 40));
    loop {
        // SAFETY: as the caller promises.
        let result = unsafe { cq_readfrom(cq, entries, count, sources) };
        // SAFETY: a completion queue.
        if result != -FI_EAGAIN || take_signal(unsafe { object(cq) }, false) || Instant::now() >= end {
            return result;
        }
        queue::give_way();
    }
}

unsafe extern "C" fn cq_signal(cq: *mut Cq) -> c_int {
    // SAFETY: a completion queue.
    take_signal(unsafe { object(cq) }, true);
    0
}

/// Sets whether a queue is asked to end a wait; the former value.
fn take_signal(cq: &Object, now: bool) -> bool {
    let mut state = cq.shared.lock();
    state.queues[cq.number].as_mut().is_some_and(|queue| std::mem::replace(&mut queue.signalled, now))
}

unsafe extern "C" fn cq_strerror(
    _cq: *mut Cq,
    error: c_int,
    _data: *const c_void,
    _place: *mut c_char,
    _length: usize,
) -> *const c_char {
    let text = match error as isize {
        FI_ETRUNC => c"the message is longer than its receive",
        FI_EHOSTUNREACH => c"the process of the peer, or of the hardware, has ended",
        FI_ECANCELED => c"the operation was cancelled",
        _ => c"the operation failed",
    };
    text.as_ptr()
}

unsafe extern "C" fn cntr_open(
    domain: *mut Domain,
    attr: *mut CntrAttr,
    place: *mut *mut Cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a domain, and attributes or null.
    let (shared, attr) = unsafe { (object(domain).shared.clone(), attr.as_ref()) };
    if attr.is_some_and(|attr| attr.events != FI_CNTR_EVENTS_COMP || !can_wait(attr.wait_obj)) {
        return -FI_ENOSYS as c_int;
    }
    let number = domain::put(&mut shared.lock().counters, Counter::default());
    // SAFETY: a place for the answer.
    unsafe { *place = make(FI_CLASS_CNTR, context, &[table(&COUNTER)], shared, number) };
    0
}

/// # Safety
/// The pointer is a counter.
unsafe fn counter(cntr: *mut Cntr, change: impl FnOnce(&mut Counter)) -> Counter {
    // SAFETY: as the caller promises.
    let cntr = unsafe { object(cntr) };
    let mut state = cntr.shared.lock();
    state.progress();
    let counter = state.counters[cntr.number].as_mut().expect("an open counter");
    change(counter);
    *counter
}

unsafe extern "C" fn cntr_read(cntr: *mut Cntr) -> u64 {
    // SAFETY: a counter.
    unsafe { counter(cntr, |_| {}).value }
}

unsafe extern "C" fn cntr_readerr(cntr: *mut Cntr) -> u64 {
    // SAFETY: a counter.
    unsafe { counter(cntr, |_| {}).errors }
}

unsafe extern "C" fn cntr_add(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: a counter.
    unsafe { counter(cntr, |counter| counter.value += value) };
    0
}

unsafe extern "C" fn cntr_set(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: a counter.
    unsafe { counter(cntr, |counter| counter.value = value) };
    0
}

unsafe extern "C" fn cntr_adderr(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: a counter.
    unsafe { counter(cntr, |counter| counter.errors += value) };
    0
}

unsafe extern "C" fn cntr_seterr(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: a counter.
    unsafe { counter(cntr, |counter| counter.errors = value) };
    0
}

/// Errors that the program can have seen: without progress.
///
/// # Safety
/// The pointer is a counter.
unsafe fn known_errors(cntr: *mut Cntr) -> u64 {
    // SAFETY: as the caller promises.
    let cntr = unsafe { object(cntr) };
    cntr.shared.lock().counters[cntr.number].map_or(0, |counter| counter.errors)
}

unsafe extern "C" fn cntr_wait(cntr: *mut Cntr, threshold: u64, timeout: c_int) -> c_int {
    let end = Instant::now() + Duration::from_millis(u64::try_from(timeout).unwrap_or(1 << 40));
    // SAFETY: a counter.
    let errors = unsafe { known_errors(cntr) };
    loop {
        // SAFETY: a counter.
        let now = unsafe { counter(cntr, |_| {}) };
        if now.value >= threshold || now.errors != errors {
            return if now.value >= threshold { 0 } else { -FI_EAVAIL as c_int };
        }
        if Instant::now() >= end {
            return -FI_ETIMEDOUT as c_int;
        }
        queue::give_way();
    }
}

/// # Safety
/// The pointers are a domain and a place for the answer.
unsafe fn register(
    domain: *mut Fid,
    span: Span,
    access: u64,
    key: u64,
    place: *mut *mut Mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a domain.
    let shared = unsafe { object(domain) }.shared.clone();
    let mut state = shared.lock();
    state.next_key += 1;
    let key = if shared.own_keys { state.next_key } else { key };
    let rights = u64::from(access & FI_REMOTE_READ != 0) | u64::from(access & FI_REMOTE_WRITE != 0) << 1;
    let grant = Grant { key, address: span.address as u64, length: span.length as u64, rights };
    if rights != 0 {
        if info::hardware().is_some() {
            return -FI_ENOSYS as c_int;
        }
        if state.grants.iter().any(|other| other.key == key) {
            return -FI_ENOKEY as c_int;
        }
        if state.grants.len() >= GRANTS {
            return -FI_ENOSPC as c_int;
        }
        for endpoint in state.endpoints.iter_mut().flatten() {
            endpoint.engine.lane.lend(grant);
        }
        state.grants.push(grant);
    }
    drop(state);
    // SAFETY: a place for the answer.
    unsafe { *place = make(FI_CLASS_MR, context, &[null(), key as *const c_void], shared, usize::from(rights != 0)) };
    0
}

unsafe extern "C" fn mr_reg(
    domain: *mut Fid,
    address: *const c_void,
    length: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    place: *mut *mut Mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { register(domain, Span { address: address as usize, length }, access, key, place, context) }
}

unsafe extern "C" fn mr_regv(
    domain: *mut Fid,
    iov: *const IoVec,
    count: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    place: *mut *mut Mr,
    context: *mut c_void,
) -> c_int {
    if count != 1 {
        return -FI_EINVAL as c_int;
    }
    // SAFETY: as the caller promises.
    unsafe { register(domain, *iov.cast(), access, key, place, context) }
}

unsafe extern "C" fn mr_regattr(domain: *mut Fid, attr: *const MrAttr, _flags: u64, place: *mut *mut Mr) -> c_int {
    // SAFETY: valid attributes.
    let attr = unsafe { &*attr };
    if attr.iov_count != 1 {
        return -FI_EINVAL as c_int;
    }
    // SAFETY: as the caller promises.
    unsafe { register(domain, *attr.mr_iov.cast(), attr.access, attr.requested_key, place, attr.context) }
}
