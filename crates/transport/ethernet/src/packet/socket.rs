//! A packet socket of Linux (packet(7)).
//!
//! # Safety
//! All structures that are given to the kernel are plain data of the C library, live on the stack through the call, and are
//! given with their own size. The kernel keeps no pointer of theirs after a call: a filter is copied, and so are frames,
//! unless they are sent from a mapped ring, which this module does not use.

#![allow(unsafe_code, reason = "calls of the system that no safe library has")]

use super::filter::Instruction;
use crate::frame::{ETHERTYPE, Mac};
use std::{
    ffi::c_int,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

/// Bytes of frames that may wait in the kernel to be sent.
const SEND_BUFFER_BYTES: c_int = 4 << 20;
/// Most frames that are sent by one call.
const MOST_AT_ONCE: usize = 64;

/// The socket.
#[derive(Debug)]
pub(crate) struct Socket {
    file: OwnedFd,
}

/// An interface of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterfaceProperties {
    pub(crate) index: c_int,
    pub(crate) mac: Mac,
    pub(crate) mtu: usize,
    pub(crate) is_loopback: bool,
}

impl Socket {
    /// Opens a socket that receives nothing until it is bound.
    pub(crate) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: there are no pointers; a file that is not negative belongs to nobody else.
        let file = unsafe {
            let file = checked(libc::socket(libc::AF_PACKET, kind, 0))?;
            OwnedFd::from_raw_fd(file)
        };
        let socket = Self { file };
        // The limit of the system holds if this is above it.
        let _unless_refused = socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER_BYTES);
        Ok(socket)
    }

    /// Finds an interface by its name.
    pub(crate) fn find(&self, name: &str) -> io::Result<InterfaceProperties> {
        let mut request = ifreq(name)?;
        let index = self.ask(libc::SIOCGIFINDEX, &mut request, |answer| {
            // SAFETY: this request fills that field.
            unsafe { answer.ifr_ifru.ifru_ifindex }
        })?;
        let mtu = self.ask(libc::SIOCGIFMTU, &mut request, |answer| {
            // SAFETY: this request fills that field.
            unsafe { answer.ifr_ifru.ifru_mtu }
        })?;
        let address = self.ask(libc::SIOCGIFHWADDR, &mut request, |answer| {
            // SAFETY: this request fills that field.
            unsafe { answer.ifr_ifru.ifru_hwaddr }
        })?;
        if ![libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&address.sa_family) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it is not an Ethernet interface"));
        }
        let mac = Mac(std::array::from_fn(|at| address.sa_data[at] as u8));
        Ok(InterfaceProperties {
            index,
            mac,
            mtu: mtu as usize,
            is_loopback: address.sa_family == libc::ARPHRD_LOOPBACK,
        })
    }

    fn ask<T>(
        &self,
        what: libc::c_ulong,
        request: &mut libc::ifreq,
        read: impl Fn(&libc::ifreq) -> T,
    ) -> io::Result<T> {
        // SAFETY: these requests read the name in the structure and write to its union.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), what as _, &raw mut *request) })?;
        Ok(read(request))
    }

    /// Lets frames through that the program accepts.
    pub(super) fn filter(&self, program: &[Instruction]) -> io::Result<()> {
        let mut code: Vec<_> = program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
        let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Receives frames of this protocol from an interface, and sends there; with `all`, also those that leave it.
    pub(super) fn bind(&self, interface: c_int, all: bool) -> io::Result<()> {
        let protocol = if all { libc::ETH_P_ALL as u16 } else { ETHERTYPE };
        // SAFETY: zeros are a valid structure.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the structure has this length.
        checked(unsafe { libc::bind(self.file.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
    }

    /// Receives also frames that other sockets of this machine send over the interface.
    pub(super) fn hear_outgoing(&self) -> io::Result<()> {
        // SAFETY: zeros are a valid structure.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the structure has this length.
        checked(unsafe { libc::getsockname(self.file.as_raw_fd(), (&raw mut address).cast(), &raw mut length) })?;
        self.bind(address.sll_ifindex, true)
    }

    /// Sets an option.
    pub(super) fn set<T: Copy>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value has this length, and each option of this crate is given with the type that it has.
        checked(unsafe { libc::setsockopt(self.file.as_raw_fd(), level, name, (&raw const *value).cast(), length) })
            .map(drop)
    }

    /// Sends frames, but those without bytes. Returns how many were taken, with those left out before them.
    #[inline]
    pub(super) fn send(&self, frames: &[&[u8]]) -> usize {
        if let [frame] = frames {
            return usize::from(frame.is_empty() || self.send_one(frame));
        }
        self.send_some(&frames[..frames.len().min(MOST_AT_ONCE)])
    }

    /// Sends a frame; false if there is no room. A frame that the interface refuses is lost, as on a wire.
    fn send_one(&self, frame: &[u8]) -> bool {
        // SAFETY: the bytes are read during the call only.
        let sent = unsafe { libc::send(self.file.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        sent >= 0 || !is_full(&io::Error::last_os_error())
    }

    /// Sends up to [`MOST_AT_ONCE`] frames, by one call if there is room. Returns how many were taken.
    fn send_some(&self, frames: &[&[u8]]) -> usize {
        // SAFETY: zeros are valid structures.
        let (mut parts, mut calls): ([libc::iovec; MOST_AT_ONCE], [libc::mmsghdr; MOST_AT_ONCE]) =
            unsafe { mem::zeroed() };
        let mut count = 0;
        for frame in frames.iter().filter(|frame| !frame.is_empty()) {
            parts[count] = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            calls[count].msg_hdr.msg_iov = &raw mut parts[count];
            calls[count].msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let mut sent = 0;
        while sent < count {
            let rest = &mut calls[sent..count];
            // SAFETY: each structure points to one part, which points to a frame that is read during the call only.
            let taken = unsafe {
                let flags = libc::MSG_DONTWAIT as _;
                libc::sendmmsg(self.file.as_raw_fd(), rest.as_mut_ptr(), rest.len() as _, flags)
            };
            if taken < 0 && is_full(&io::Error::last_os_error()) {
                break;
            }
            sent += taken.max(1) as usize;
        }
        // Those without bytes may be counted less: what was sent is then sent once more, and dropped where it comes again.
        if sent == count { frames.len() } else { sent }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns true if there is no room now.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A request about the interface of this name.
fn ifreq(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: zeros are a valid structure.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "names of interfaces have 1 to 15 bytes"));
    }
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    Ok(request)
}
