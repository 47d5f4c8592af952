//! Memory shared by processes: files without a name, sealed so that no other process gets more access than was granted.
//!
//! # Safety
//! A [`Region`] maps a file that can neither shrink nor grow (both seals are set before it is mapped), so every address
//! of the mapping is backed as long as the mapping lives. Unsafe functions expose its bytes, and their callers state why
//! no other code writes there.

#![allow(unsafe_code, reason = "maps memory that processes share")]

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create},
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    io,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::Arc,
};

/// Seals that fix the size of a file.
const SIZED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A new file of zeros with this many bytes, whose size cannot change. The system finds memory for a page of it when
/// the page is first written.
///
/// # Errors
/// The system has no room for the file.
pub fn create(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SIZED)?;
    Ok(file)
}

/// Forbids writing except through existing mappings, and further seals.
///
/// # Errors
/// The file is sealed already, or the system is older than Linux 5.1.
pub fn close_to_writers(file: impl AsFd) -> io::Result<()> {
    Ok(fcntl_add_seals(file, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?)
}

/// A mapped file.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    length: usize,
    writable: bool,
}

// SAFETY: the region is plain memory without ties to a thread; shared access goes through atomics, or through the
// unsafe functions below, whose callers answer for it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the whole of a file, which has `length` bytes and a fixed size.
    ///
    /// # Errors
    /// The file has another size or one that could change, or the system does not map it.
    pub fn map(file: impl AsFd, length: usize, writable: bool) -> io::Result<Arc<Self>> {
        let file = file.as_fd();
        if !fcntl_get_seals(file)?.contains(SIZED) || fstat(file)?.st_size != length as i64 || length == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "shared memory without a fixed size"));
        }
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: the system chooses a free place, and the mapping has an owner that unmaps it once.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Arc::new(Self { start, length, writable }))
    }

    /// Length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// False: a region has at least one byte.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Address of the first byte, at the beginning of a page. It is good as long as the region.
    #[inline]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The offset of these bytes in the region, if they lie in it.
    #[inline]
    pub fn locate(&self, bytes: &[u8]) -> Option<usize> {
        let offset = (bytes.as_ptr() as usize).checked_sub(self.start.as_ptr() as usize)?;
        (offset + bytes.len() <= self.length).then_some(offset)
    }

    /// The bytes of a range.
    ///
    /// # Safety
    /// The caller makes sure that nothing writes to this range as long as the slice is used.
    ///
    /// # Panics
    /// If the range is not within the region.
    #[inline]
    pub unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.length, "{range:?} of {} bytes", self.length);
        // SAFETY: the range is mapped, any byte is a valid u8, and the caller answers for writers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len()) }
    }

    /// The bytes of a range, to write them.
    ///
    /// # Safety
    /// The caller makes sure that nothing else uses this range as long as the slice is used.
    ///
    /// # Panics
    /// If the range is not within the region, or the region cannot be written.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller owns the range")]
    pub unsafe fn bytes_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(self.writable && range.start <= range.end && range.end <= self.length, "{range:?}");
        // SAFETY: the range is mapped and writable, and the caller answers for others.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(range.start), range.len()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this is what `map` mapped, and all that borrows from it is gone.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(result.is_ok(), "a mapping can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_written_by_one_mapping_are_read_by_another() {
        let file = create("test", 4096).unwrap();
        let (ours, theirs) = (Region::map(&file, 4096, true).unwrap(), Region::map(&file, 4096, false).unwrap());
        // SAFETY: the slice is gone before the next line reads.
        unsafe { ours.bytes_mut(4095..4096)[0] = 7 };
        // SAFETY: no other code writes.
        assert_eq!(unsafe { theirs.bytes(4094..4096) }, [0, 7]);
    }

    #[test]
    fn a_closed_file_is_read_only_for_newcomers() {
        let file = create("test", 4096).unwrap();
        let ours = Region::map(&file, 4096, true).unwrap();
        close_to_writers(&file).unwrap();
        assert!(Region::map(&file, 4096, true).is_err() && rustix::io::write(&file, &[1]).is_err());
        assert!(ftruncate(&file, 10).is_err() && ftruncate(&file, 10_000).is_err());
        assert!(fcntl_add_seals(&file, SealFlags::WRITE).is_err(), "no seal can be added");
        // SAFETY: the slice is gone before the next line reads.
        unsafe { ours.bytes_mut(0..1)[0] = 3 };
        let theirs = Region::map(&file, 4096, false).unwrap();
        // SAFETY: no other code writes.
        assert_eq!(unsafe { theirs.bytes(0..1) }, [3]);
    }

    #[test]
    fn files_that_could_shrink_are_not_mapped() {
        let open = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&open, 4096).unwrap();
        assert!(Region::map(&open, 4096, false).is_err());
        let file = create("test", 4096).unwrap();
        assert!(Region::map(&file, 8192, false).is_err() && Region::map(&file, 0, false).is_err());
        let region = Region::map(&file, 4096, true).unwrap();
        assert_eq!(region.locate(&[1, 2]), None);
    }
}
