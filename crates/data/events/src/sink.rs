//! Output of the writer: files, or in tests a disk of limited size.

use crate::compressed::CompressedSink;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, IoSlice, Seek, SeekFrom, Write},
    path::Path,
};

/// One file under construction.
pub(crate) trait Sink: Send {
    /// Writes as much of `parts` as possible, one after another, and returns the number of bytes.
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Truncates the file to `length` bytes; writing continues there.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A place for new files.
pub(crate) trait Storage: Send {
    /// Creates a file; fails with [`io::ErrorKind::AlreadyExists`] if it exists.
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Sink>>;

    /// Removes a file whose header could not be written.
    fn remove(&mut self, path: &Path) -> io::Result<()>;
}

/// Writes all of `parts`, and adds the number of written bytes to `written`, also if an error ends it.
pub(crate) fn write_all(sink: &mut dyn Sink, mut parts: &mut [IoSlice<'_>], written: &mut u64) -> io::Result<()> {
    // Removes empty parts at the beginning: nothing is left when all are empty.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match sink.write(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => {
                *written += taken as u64;
                IoSlice::advance_slices(&mut parts, taken);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The file system.
pub(crate) struct Disk {
    pub(crate) compresses: bool,
}

impl Storage for Disk {
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Sink>> {
        let file = OpenOptions::new().read(self.compresses).write(true).create_new(true).open(path)?;
        Ok(if self.compresses { Box::new(CompressedSink::new(file)?) } else { Box::new(file) })
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

impl Sink for File {
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_vectored(parts)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}
