//! Output of the writer: files, or in tests a disk of limited size.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::Path,
};

/// One file under construction.
pub(crate) trait Sink: Send {
    /// Writes as much of `bytes` as possible and returns the number of bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

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

/// The file system.
pub(crate) struct Disk;

impl Storage for Disk {
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

impl Sink for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}
