//! The program that the driver of an interface runs for each frame that arrives (XDP, bpf(2)): it gives frames for one node
//! of one run to the socket of its queue, and leaves all others to the kernel.
//!
//! # Safety
//! The kernel reads the attributes of a call, and what they point to, during the call only. The attributes are plain data
//! with their own size. Files that a call makes belong to nobody else.

#![allow(unsafe_code, reason = "calls of the system that no safe library has")]

use crate::{
    frame::{ETHERTYPE, RUN_AT, TO_AT, TYPE_AT, VLAN},
    interface::Address,
};
use std::{
    ffi::c_long,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// Commands of bpf(2), from `linux/bpf.h`.
const MAP_CREATE: c_long = 0;
const MAP_UPDATE: c_long = 2;
const PROGRAM_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;

/// Kinds of maps, programs and attachments, from `linux/bpf.h`.
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_FOR_FRAMES: u32 = 6;
const ATTACH_TO_FRAMES: u32 = 37;
/// The driver itself runs the program, from `linux/if_link.h`. Without that, frames take the way of all others first.
const IN_DRIVER: u32 = 1 << 2;

/// What a program answers: the kernel gets the frame.
const PASS: i32 = 2;
/// The number of `bpf_redirect_map`.
const REDIRECT: i32 = 51;

/// Queues that the map of sockets has room for.
const MOST_QUEUES: u32 = 1;

/// A program at an interface. It is detached when this is dropped, and when the process dies.
#[derive(Debug)]
pub(super) struct Link {
    _link: OwnedFd,
    sockets: OwnedFd,
}

impl Link {
    /// Attaches the program for a node to an interface.
    pub(super) fn attach(interface: u32, address: Address) -> io::Result<Self> {
        let sockets = make(MAP_CREATE, &[MAP_OF_SOCKETS, 4, 4, MOST_QUEUES])?;
        let code = program(address, sockets.as_raw_fd());
        let program = make(
            PROGRAM_LOAD,
            &Load {
                kind: PROGRAM_FOR_FRAMES,
                count: code.len() as u32,
                code: code.as_ptr() as u64,
                license: c"Apache-2.0".as_ptr() as u64,
                attach: ATTACH_TO_FRAMES,
                ..Load::default()
            },
        )?;
        let link = make(LINK_CREATE, &[program.as_raw_fd() as u32, interface, ATTACH_TO_FRAMES, IN_DRIVER])?;
        Ok(Self { _link: link, sockets })
    }

    /// Gives the frames of a queue to a socket.
    pub(super) fn give(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = socket.as_raw_fd() as u32;
        let update = Update {
            map: self.sockets.as_raw_fd() as u64,
            key: ptr::from_ref(&queue) as u64,
            value: ptr::from_ref(&value) as u64,
            flags: 0,
        };
        call(MAP_UPDATE, &update).map(drop)
    }
}

/// Attributes of [`PROGRAM_LOAD`], up to the last one that is not zero.
#[derive(Default)]
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

/// Attributes of [`MAP_UPDATE`].
#[repr(C)]
struct Update {
    map: u64,
    key: u64,
    value: u64,
    flags: u64,
}

/// A command that makes something, and its file.
fn make<T>(command: c_long, attributes: &T) -> io::Result<OwnedFd> {
    let file = call(command, attributes)?;
    // SAFETY: the file is new.
    Ok(unsafe { OwnedFd::from_raw_fd(file as i32) })
}

fn call<T>(command: c_long, attributes: &T) -> io::Result<c_long> {
    // SAFETY: the attributes are plain data of this size.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An instruction: operation, registers (source, then destination, four bits each), offset, constant.
type Instruction = (u8, u8, i16, i32);

const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const COPY: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x07;
const IF_MORE: u8 = 0x2d;
const IF_OTHER: u8 = 0x55;
const IF_OTHER_WORD: u8 = 0x56;
const LOAD_MAP: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Offsets in what the program is called with (`xdp_md`): the first byte of the frame, the one behind it, and its queue.
const BEGIN: i16 = 0;
const END: i16 = 4;
const QUEUE: i16 = 16;
/// Bytes of a VLAN tag, and those that the program reads of a frame with one: up to the receiver's end.
const TAG_BYTES: i32 = 4;
const READ_BYTES: i32 = TO_AT as i32 + 2 + TAG_BYTES;

/// The code of the program for a node, with the file of the map of sockets.
fn program(Address { local, run }: Address, sockets: i32) -> Vec<u64> {
    // A register as destination, and two with a source.
    let (into, both) = (|to: u8| to, |to: u8, from: u8| from << 4 | to);
    let pass = 20;
    let to_pass = |from: i16| pass - from - 1;
    let big = |half: u16| i32::from(u16::from_ne_bytes(half.to_be_bytes()));
    let code: [Instruction; 22] = [
        (LOAD_WORD, both(2, 1), BEGIN, 0),
        (LOAD_WORD, both(3, 1), END, 0),
        (COPY, both(4, 2), 0, 0),
        (ADD, into(4), 0, READ_BYTES),
        (IF_MORE, both(4, 3), to_pass(4), 0),
        (LOAD_HALF, both(5, 2), TYPE_AT as i16, 0),
        (IF_OTHER, into(5), 2, big(VLAN)),
        (ADD, into(2), 0, TAG_BYTES),
        (LOAD_HALF, both(5, 2), TYPE_AT as i16, 0),
        (IF_OTHER, into(5), to_pass(9), big(ETHERTYPE)),
        (LOAD_WORD, both(5, 2), RUN_AT as i16, 0),
        (IF_OTHER_WORD, into(5), to_pass(11), i32::from_ne_bytes(run.to_le_bytes())),
        (LOAD_HALF, both(5, 2), TO_AT as i16, 0),
        (IF_OTHER, into(5), to_pass(13), i32::from(u16::from_ne_bytes(local.0.to_le_bytes()))),
        (LOAD_WORD, both(2, 1), QUEUE, 0),
        // Two instructions, marked as the file of a map.
        (LOAD_MAP, both(1, 1), 0, sockets),
        (0, 0, 0, 0),
        // Where there is no socket for the queue, the kernel gets the frame.
        (SET, into(3), 0, PASS),
        (CALL, 0, 0, REDIRECT),
        (EXIT, 0, 0, 0),
        (SET, into(0), 0, PASS),
        (EXIT, 0, 0, 0),
    ];
    code.map(word).to_vec()
}

/// The eight bytes of an instruction.
fn word((operation, registers, offset, constant): Instruction) -> u64 {
    let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), constant.to_ne_bytes());
    u64::from_ne_bytes([operation, registers, a, b, c, d, e, f])
}
