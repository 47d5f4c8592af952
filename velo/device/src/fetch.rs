//! Memory of other processes, and memory that a program has named by address and length.
//!
//! # Safety
//! A [`Span`] is a promise of the program that calls the C interface or libfabric: its memory stays valid until the message
//! is complete. The functions here are the only ones that use the promise. The system checks addresses in other processes.

#![allow(unsafe_code, reason = "copies memory that a program names by address")]

use std::io;

/// Memory of a program: where and how many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// Address of the first byte.
    pub address: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Span {
    /// All of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { address: bytes.as_ptr() as usize, length: bytes.len() }
    }

    /// The part behind `skip` bytes, with at most `most` bytes.
    #[inline]
    fn part(self, skip: usize, most: usize) -> Self {
        let skip = skip.min(self.length);
        Self { address: self.address + skip, length: (self.length - skip).min(most) }
    }
}

/// The pieces of `spans` behind `skip` bytes, with at most `most` bytes in all.
pub(crate) fn cut(spans: &[Span], mut skip: usize, mut most: usize) -> Vec<Span> {
    let mut parts = Vec::with_capacity(spans.len());
    for span in spans {
        let part = span.part(skip, most);
        skip -= skip.min(span.length);
        most -= part.length;
        if part.length > 0 {
            parts.push(part);
        }
    }
    parts
}

/// Copies memory of a program to `target`, from byte `skip` of it on, and `room` bytes at most; the number of copied bytes.
///
/// # Safety
/// `room` bytes can be written at `target`.
#[inline]
pub(crate) unsafe fn gather(spans: &[Span], mut skip: usize, target: *mut u8, room: usize) -> usize {
    let mut done = 0;
    for span in spans {
        let part = span.part(skip, room - done);
        skip -= skip.min(span.length);
        // SAFETY: the program promised that this memory is valid, and the caller that the target has room.
        unsafe { std::ptr::copy(part.address as *const u8, target.add(done), part.length) };
        done += part.length;
    }
    done
}

/// Copies `length` bytes into memory of a program, from byte `skip` of it on; the number of copied bytes.
///
/// # Safety
/// `length` bytes can be read at `source`.
#[inline]
pub(crate) unsafe fn scatter(spans: &[Span], mut skip: usize, source: *const u8, length: usize) -> usize {
    let mut done = 0;
    for span in spans {
        let part = span.part(skip, length - done);
        skip -= skip.min(span.length);
        // SAFETY: the program promised that this memory is valid and its own, and the caller that the source is.
        unsafe { std::ptr::copy(source.add(done), part.address as *mut u8, part.length) };
        done += part.length;
    }
    done
}

/// Copies bytes of a program into `target`, from byte `skip` of its memory on; the number of copied bytes.
#[inline]
pub fn copy_in(spans: &[Span], skip: usize, target: &mut [u8]) -> usize {
    // SAFETY: the target is borrowed.
    unsafe { gather(spans, skip, target.as_mut_ptr(), target.len()) }
}

/// Copies `source` into memory of a program, from byte `skip` on; the number of copied bytes.
#[inline]
pub fn copy_out(spans: &[Span], skip: usize, source: &[u8]) -> usize {
    // SAFETY: the source is borrowed.
    unsafe { scatter(spans, skip, source.as_ptr(), source.len()) }
}

type Call = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

fn transfer(call: Call, process: u32, own: &[Span], theirs: &[Span]) -> io::Result<()> {
    let all = |spans: &[Span]| spans.iter().map(|span| span.length).sum::<usize>();
    let total = all(own).min(all(theirs));
    let mut done = 0;
    while done < total {
        let (own, theirs) = (cut(own, done, total - done), cut(theirs, done, total - done));
        // SAFETY: a `Span` has the layout of an `iovec`; own memory is promised, the other one is checked by the system.
        let copied = unsafe {
            call(process as i32, own.as_ptr().cast(), own.len() as _, theirs.as_ptr().cast(), theirs.len() as _, 0)
        };
        match copied {
            ..0 => return Err(io::Error::last_os_error()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => done += more as usize,
        }
    }
    Ok(())
}

/// Copies memory of another process into memory of this program: as many bytes as the shorter of both has.
///
/// # Errors
/// The process is gone or forbids it, or the memory is not mapped.
pub fn fetch(process: u32, own: &[Span], theirs: &[Span]) -> io::Result<()> {
    transfer(libc::process_vm_readv, process, own, theirs)
}

/// Copies memory of this program into memory of another process, like [`fetch`].
///
/// # Errors
/// Those of [`fetch`].
pub fn store(process: u32, own: &[Span], theirs: &[Span]) -> io::Result<()> {
    transfer(libc::process_vm_writev, process, own, theirs)
}
