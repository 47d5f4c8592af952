//! The functions of `evbvelo.h`.
//!
//! # Safety
//! A device is null, or comes from [`evbvelo_open`] and is not closed. Other pointers are null, or name as much memory as the
//! header says. Null is answered with an error. A device that another thread uses is answered with an error, so that calls
//! never run at the same time. A panic stays in the function and breaks the device.

#![allow(unsafe_code, reason = "implements functions that C calls")]
#![expect(unreachable_pub, reason = "exported to C only")]

use crate::{
    Arrival, Code, KIND_MESSAGE, KIND_NOTICE,
    lane::{Lane, Words},
};
use evb_velo_device::{Address, Grant, Span};
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, TryLockError},
    time::Duration,
};

/// The interface that this library has, which `evbvelo_version` tells.
pub const VERSION: c_int = 1;
/// Longest time that a function waits, for times that do not fit a clock.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// `evbvelo`: an open device.
#[derive(Debug)]
pub struct Handle(Mutex<Lane>);

fn guard<T: From<i32>>(act: impl FnOnce() -> Result<T, Code>) -> T {
    let result = catch_unwind(AssertUnwindSafe(act));
    result.unwrap_or(Err(Code::Broken)).unwrap_or_else(|code| T::from(code as i32))
}

/// Runs a call on a device, or says why it cannot.
fn with<T: From<i32>>(device: *mut Handle, act: impl FnOnce(&mut Lane) -> Result<T, Code>) -> T {
    guard(|| {
        // SAFETY: null, or an open device, as the module says.
        let handle = unsafe { device.as_ref() }.ok_or(Code::Invalid)?;
        let mut lane = handle.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Code::Busy,
            TryLockError::Poisoned(_) => Code::Broken,
        })?;
        act(&mut lane)
    })
}

fn span(bytes: *const c_void, length: usize) -> Result<Span, Code> {
    let fits = length <= isize::MAX as usize && (length == 0 || !bytes.is_null());
    if fits { Ok(Span { address: bytes as usize, length }) } else { Err(Code::Invalid) }
}

/// A place for an answer.
fn place<'a, T>(pointer: *mut T) -> Result<&'a mut T, Code> {
    // SAFETY: null, or a place of this type that no other code uses during the call, as the module says.
    unsafe { pointer.as_mut() }.ok_or(Code::Invalid)
}

fn text<'a>(pointer: *const c_char) -> Result<&'a str, Code> {
    if pointer.is_null() {
        return Err(Code::Invalid);
    }
    // SAFETY: not null, and so a string of C, as the module says.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| Code::Name)
}

fn time(timeout_us: i64) -> Duration {
    u64::try_from(timeout_us).map_or(LONGEST, Duration::from_micros).min(LONGEST)
}

/// The version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_version() -> c_int {
    VERSION
}

/// The text of an error.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_error(code: c_int) -> *const c_char {
    let code = Code::ALL.iter().find(|known| **known as c_int == code);
    code.map_or(c"no error of evbvelo", |code| code.text()).as_ptr()
}

/// Opens a device.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_open(name: *const c_char, device: *mut *mut Handle) -> c_int {
    guard(|| {
        let device = place(device)?;
        let name = if name.is_null() { None } else { Some(text(name)?) };
        *device = std::ptr::null_mut();
        *device = Box::into_raw(Box::new(Handle(Mutex::new(Lane::open(name)?))));
        Ok(0)
    })
}

/// Closes a device.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_close(device: *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: null, or an open device, as the module says.
        let handle = unsafe { device.as_ref() }.ok_or(Code::Invalid)?;
        if matches!(handle.0.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Code::Busy);
        }
        // SAFETY: it comes from a box, and it is not used afterwards.
        drop(unsafe { Box::from_raw(device) });
        Ok(0)
    })
}

/// Waits until peers have received everything.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_flush(device: *mut Handle, timeout_us: i64) -> c_int {
    with(device, |lane| lane.flush(time(timeout_us)))
}

/// The address of a device.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_address(device: *mut Handle, address: *mut [u8; Address::BYTES]) -> c_int {
    with(device, |lane| {
        *place(address)? = lane.device().address().to_bytes();
        Ok(0)
    })
}

/// The peer with a name.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_map(device: *mut Handle, name: *const c_char) -> c_int {
    with(device, |lane| Ok(lane.device().find(text(name)?)? as c_int))
}

/// The peer with an address.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_map_address(device: *mut Handle, address: *const [u8; Address::BYTES]) -> c_int {
    with(device, |lane| {
        // SAFETY: null, or an address, as the module says.
        let address = unsafe { address.as_ref() }.ok_or(Code::Invalid)?;
        Ok(lane.device().connect(Address::from_bytes(*address))? as c_int)
    })
}

/// Says whether a peer runs.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_alive(device: *mut Handle, peer: c_int) -> c_int {
    with(device, |lane| match lane.peer(peer) {
        Ok(peer) => Ok(lane.device().is_alive(peer).into()),
        Err(Code::Gone) => Ok(0),
        Err(code) => Err(code),
    })
}

/// Sends a message.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_send(
    device: *mut Handle,
    peer: c_int,
    bytes: *const c_void,
    length: usize,
    tag: u64,
    data: u64,
) -> c_int {
    with(device, |lane| lane.send(peer, Words { tag, data, kind: KIND_MESSAGE }, span(bytes, length)?))
}

/// Says whether a send is over.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_done(device: *mut Handle, send: c_int) -> c_int {
    with(device, |lane| lane.done(send))
}

/// Sends a notice.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_notify(device: *mut Handle, peer: c_int, tag: u64, data: u64) -> c_int {
    with(device, |lane| lane.send(peer, Words { tag, data, kind: KIND_NOTICE }, Span::default()))
}

/// Shows the first message.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_poll(device: *mut Handle, message: *mut Arrival) -> c_int {
    with(device, |lane| {
        let message = place(message)?;
        let arrival = lane.poll();
        *message = arrival.unwrap_or_default();
        Ok(arrival.is_some().into())
    })
}

/// Moves the first message into memory.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_receive(device: *mut Handle, buffer: *mut c_void, room: usize) -> i64 {
    with(device, |lane| lane.receive(span(buffer, room)?))
}

/// Throws the first message away.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_discard(device: *mut Handle) -> c_int {
    with(device, Lane::discard)
}

/// Waits for a message or the end of a send.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_wait(device: *mut Handle, timeout_us: i64) -> c_int {
    with(device, |lane| lane.wait(time(timeout_us)))
}

/// Lends memory to peers.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_lend(
    device: *mut Handle,
    key: u64,
    memory: *mut c_void,
    length: usize,
    rights: c_int,
) -> c_int {
    with(device, |lane| {
        let Span { address, length } = span(memory, length)?;
        if !(1..=3).contains(&rights) || length == 0 {
            return Err(Code::Invalid);
        }
        let grant = Grant { key, address: address as u64, length: length as u64, rights: rights as u64 };
        if lane.device().lend(grant) { Ok(0) } else { Err(Code::NoKey) }
    })
}

/// Takes lent memory back.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_take_back(device: *mut Handle, key: u64) -> c_int {
    with(device, |lane| {
        lane.device().take_back(key);
        Ok(0)
    })
}

fn remote(device: *mut Handle, peer: c_int, put: bool, key: u64, offset: u64, own: Result<Span, Code>) -> c_int {
    with(device, |lane| {
        let (peer, own) = (lane.peer(peer)?, own?);
        lane.device().remote(peer, put, &[own], key, offset, false)?;
        Ok(0)
    })
}

/// Writes lent memory of a peer.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_put(
    device: *mut Handle,
    peer: c_int,
    key: u64,
    offset: u64,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    remote(device, peer, true, key, offset, span(bytes, length))
}

/// Reads lent memory of a peer.
#[unsafe(no_mangle)]
pub extern "C" fn evbvelo_get(
    device: *mut Handle,
    peer: c_int,
    key: u64,
    offset: u64,
    buffer: *mut c_void,
    length: usize,
) -> c_int {
    remote(device, peer, false, key, offset, span(buffer, length))
}
