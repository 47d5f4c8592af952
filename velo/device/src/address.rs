//! How a process finds the segment of another: by process, file and nonce, through the files that the system shows of a
//! process. Nothing has a name in a file system, so a killed process leaves nothing behind.

use crate::{layout, segment::Segment};
use rustix::{
    fs::{Mode, OFlags, fstat, open},
    io::Errno,
};
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

    /// Returns true if the owner still runs, or if this cannot be known: a process without a free file number sees no other.
    pub(crate) fn is_alive(self) -> bool {
        match std::fs::read(format!("/proc/{}/stat", self.process)) {
            Ok(status) => !has_ended(&status),
            Err(error) => !matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH)),
        }
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

/// Returns true if this is the status of a process that only waits to be forgotten. The state is behind the name, which
/// is any bytes between brackets.
fn has_ended(status: &[u8]) -> bool {
    let name_end = status.iter().rposition(|byte| *byte == b')');
    let state = name_end.and_then(|end| status.get(end + 2));
    matches!(state, None | Some(b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, process::CommandExt},
        process::Command,
    };

    /// The system cuts names after 15 bytes, so a name may end within a character.
    #[test]
    fn a_process_with_any_name_lives_until_it_has_ended() {
        for name in ["evb) Z 1".as_bytes(), "12345678901234é".as_bytes()] {
            let folder = std::env::temp_dir().join(format!("evbvelo-{}-{}", std::process::id(), name.len()));
            std::fs::create_dir_all(&folder).unwrap();
            let program = folder.join(OsStr::from_bytes(name));
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
            let mut child = Command::new(&program).arg0("sleep").arg("1000").spawn().unwrap();
            let address = Address { process: child.id(), file: 0, nonce: 0 };
            let was_alive = address.is_alive();
            child.kill().unwrap();
            child.wait().unwrap();
            std::fs::remove_dir_all(&folder).unwrap();
            assert!(was_alive && !address.is_alive());
        }
    }

    #[test]
    fn a_zombie_process_has_ended() {
        assert!(has_ended(b"12 (evb) Z 1") && has_ended(b"12 (evb) X 1") && has_ended(b""));
        assert!(!has_ended(b"12 (evb) Z 1) S 1") && !has_ended(b"12 (\xc3) R 1"));
    }
}
