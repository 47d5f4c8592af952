//! How a process finds the segment of another: by process, file and nonce, through the files that the system shows of a
//! process. Nothing has a name in a file system, so a killed process leaves nothing behind.

use crate::{layout, segment::Segment};
use rustix::fs::{Mode, OFlags, fstat, open};
use std::{io, sync::atomic::Ordering};

/// The address of a device: 16 bytes that any process of the same user and machine can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The process that owns it.
    pub process: u32,
    /// The number of its segment among the open files of that process.
    pub file: u32,
    /// A random number of this segment.
    pub nonce: u64,
}

impl Address {
    /// Length of an address in bytes.
    pub const BYTES: usize = 16;

    /// The address as bytes, in the order of this machine.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.process.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.file.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.nonce.to_ne_bytes());
        bytes
    }

    /// The address in these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, nonce @ ..] = bytes;
        let (process, file) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        Self { process, file, nonce: u64::from_ne_bytes(nonce) }
    }

    /// Returns true if the owner still runs.
    pub(crate) fn is_alive(self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.process));
        let state = status.as_deref().ok().and_then(|line| line.rsplit_once(") ")).map(|(_, rest)| &rest[..1]);
        matches!(state, Some(state) if state != "Z" && state != "X")
    }

    /// Maps the segment of a device.
    pub(crate) fn open(self) -> io::Result<Segment> {
        self.map(layout::MAGIC)
    }

    /// Maps a segment that begins with this word.
    pub(crate) fn map<const BYTES: usize>(self, magic: u64) -> io::Result<Segment<BYTES>> {
        let path = format!("/proc/{}/fd/{}", self.process, self.file);
        let file = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        if fstat(&file)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the segment belongs to another user"));
        }
        let segment = Segment::map(file)?;
        let word = |at| segment.word(at).load(Ordering::Acquire);
        if word(layout::MAGIC_AT) != magic || word(layout::NONCE_AT) != self.nonce {
            return Err(io::Error::new(io::ErrorKind::NotFound, "another segment has taken its place"));
        }
        Ok(segment)
    }
}
