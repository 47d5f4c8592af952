//! Files as one array of bytes that NumPy reads in place.
//!
//! # Safety
//! A [`Mapping`] owns one range of addresses from its making to its end, so no other mapping is ever overwritten, and every
//! address of it may be read: either a file is mapped there, or memory of its own, with a decompressed file or zeros. It is written
//! only before the mapping is made known to anybody. Two things remain with the
//! user of the files, as with every mapped file: bytes that another process changes are seen changed, and a file that is made shorter
//! than the part that is read ends the process with SIGBUS. evb itself only appends to event files; where it cuts one off,
//! after a full disk, it cuts bytes of no event.

#![allow(unsafe_code, reason = "maps files beside each other")]

use evb_events::EventFile;
use pyo3::{prelude::*, types::PyDict};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;
use std::{
    ffi::c_void,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    ptr::{NonNull, null_mut},
    slice,
};

/// Files beside each other in memory, each from the beginning of a page.
#[pyclass(frozen, module = "evb._native")]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    /// Length of the range of addresses, a multiple of the page size; at least one page.
    length: usize,
    /// Offset of each file.
    starts: Vec<usize>,
}

// SAFETY: the mapping is memory that is only read, without ties to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

#[pymethods]
impl Mapping {
    /// Maps these files for reading. A compressed file is decompressed into memory.
    #[new]
    fn new(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Self> {
        Ok(py.detach(|| Self::open(&files))?)
    }

    /// Offset of each file.
    #[getter]
    fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The bytes, as NumPy takes them; the array keeps this object.
    #[getter(__array_interface__)]
    fn array_interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.length,))?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("data", (self.start.as_ptr().addr(), true))?;
        Ok(interface)
    }
}

impl Mapping {
    fn open(files: &[PathBuf]) -> io::Result<Self> {
        let open = |path: &PathBuf| EventFile::open(path).and_then(|mut file| Ok((length(&mut file)?, file)));
        Self::map(&mut files.iter().map(open).collect::<io::Result<Vec<_>>>()?)
    }

    fn map(files: &mut [(usize, EventFile)]) -> io::Result<Self> {
        let page = page_size();
        let mut starts = Vec::with_capacity(files.len());
        let mut length = 0_usize;
        for (bytes, _) in files.iter() {
            starts.push(length);
            length = length.checked_add(bytes.next_multiple_of(page)).ok_or(io::ErrorKind::OutOfMemory)?;
        }
        let length = length.max(page);
        // SAFETY: the system chooses a free range, which this mapping owns from now on.
        let start =
            unsafe { mmap_anonymous(null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE | MapFlags::NORESERVE) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { start, length, starts };
        for ((bytes, file), offset) in files.iter_mut().zip(&mapping.starts).filter(|((bytes, _), _)| *bytes > 0) {
            // SAFETY: the offset lies in the range that this mapping owns.
            let place = unsafe { start.as_ptr().byte_add(*offset) };
            match file.plain() {
                Some(file) => {
                    let flags = MapFlags::SHARED | MapFlags::FIXED;
                    // SAFETY: the file takes whole pages from its offset on, which lie in the range that this mapping owns, and no
                    // other file does.
                    unsafe { mmap(place, *bytes, ProtFlags::READ, flags, file, 0) }?;
                }
                None => {
                    // SAFETY: as above, and nobody reads the range before this mapping is made.
                    unsafe { mprotect(place, *bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?;
                    // SAFETY: the bytes are memory of this mapping, zero at first, and nobody else has them.
                    file.read_exact(unsafe { slice::from_raw_parts_mut(place.cast(), *bytes) })?;
                    // SAFETY: the slice is gone.
                    unsafe { mprotect(place, *bytes, MprotectFlags::READ) }?;
                }
            }
        }
        Ok(mapping)
    }
}

/// Length of an event file without compression.
fn length(file: &mut EventFile) -> io::Result<usize> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is that of this mapping, and whoever reads it keeps this object.
        let result = unsafe { munmap(self.start.as_ptr(), self.length) };
        debug_assert!(result.is_ok(), "{result:?}");
    }
}
