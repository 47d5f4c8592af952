//! The greeting with which endpoints introduce themselves, and the descriptors that travel with it.

use evb_core::NodeId;
use evb_transport::{Refusal, Token};
use rustix::{
    cmsg_space,
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

const MAGIC: [u8; 8] = *b"evb-shm\0";
const VERSION: u16 = 1;
/// Length of a greeting in bytes.
const BYTES: usize = 64;
/// Descriptors of an offer: lane, credit page, bell and pool.
pub(super) const OFFERED: usize = 4;

/// Sender and receiver of a greeting, and the sizes of the offered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) nodes: u16,
    /// Bytes of the ring in which the peer is to send.
    pub(super) ring_bytes: u64,
    /// Bytes of this side's pool.
    pub(super) pool_bytes: u64,
}

/// A greeting, or the reason for its refusal.
pub(super) type Introduction = Result<Greeting, Refusal>;

impl Greeting {
    fn encode(introduction: &Introduction, token: &Token) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let (status, parts) = match introduction {
            Ok(greeting) => (0, Some(greeting)),
            Err(refusal) => (refusal.code(), None),
        };
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&status.to_le_bytes());
        if let Some(greeting) = parts {
            for (slot, field) in bytes[12..].chunks_exact_mut(2).zip([greeting.from.0, greeting.to.0]) {
                slot.copy_from_slice(&field.to_le_bytes());
            }
            bytes[16..24].copy_from_slice(&(greeting.ring_bytes << 16 | u64::from(greeting.nodes)).to_le_bytes());
            bytes[24..32].copy_from_slice(&greeting.pool_bytes.to_le_bytes());
            bytes[32..].copy_from_slice(token.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; BYTES], token: &Token) -> Introduction {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        if bytes[..8] != MAGIC || short(8) != VERSION {
            return Err(Refusal::Version);
        }
        match short(10) {
            0 if !token.matches(&std::array::from_fn(|index| bytes[32 + index])) => Err(Refusal::Token),
            0 => Ok(Self {
                from: NodeId(short(12)),
                to: NodeId(short(14)),
                nodes: short(16),
                ring_bytes: long(16) >> 16,
                pool_bytes: long(24),
            }),
            code => Err(Refusal::from_code(code).unwrap_or(Refusal::Version)),
        }
    }
}

/// Sends a greeting and its descriptors in one message. A peer that has not shown the token gets a refusal only.
pub(super) fn send(
    socket: &UnixStream,
    introduction: &Introduction,
    token: &Token,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(OFFERED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = Greeting::encode(introduction, token);
    let sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == BYTES { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Takes a greeting, which a Unix socket delivers as a whole, and its descriptors.
pub(super) fn receive(socket: &UnixStream, token: &Token) -> io::Result<(Introduction, Vec<OwnedFd>)> {
    let (mut bytes, mut descriptors) = ([0; BYTES], Vec::new());
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(OFFERED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let count = received.bytes;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        // The system drops the descriptors for which this process has no place.
        return Err(Errno::MFILE.into());
    }
    match count {
        BYTES => Ok((Greeting::decode(&bytes, token), descriptors)),
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((Err(Refusal::Version), Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_come_back_and_wrong_ones_are_refused() {
        let token = Token::new([9; Token::BYTES]);
        let greeting =
            Greeting { from: NodeId(3), to: NodeId(1), nodes: 65535, ring_bytes: 1 << 18, pool_bytes: 1 << 40 };
        let bytes = Greeting::encode(&Ok(greeting), &token);
        assert_eq!(Greeting::decode(&bytes, &token), Ok(greeting));
        assert_eq!(Greeting::decode(&bytes, &Token::new([8; Token::BYTES])), Err(Refusal::Token));
        for refusal in [Refusal::Version, Refusal::Token, Refusal::Node] {
            let bytes = Greeting::encode(&Err(refusal), &token);
            assert_eq!(Greeting::decode(&bytes, &token), Err(refusal));
            assert!(!bytes.windows(4).any(|part| part == [9; 4]), "a refusal does not show the token");
        }
        assert_eq!(Greeting::decode(&[0xff; BYTES], &token), Err(Refusal::Version));
    }
}
