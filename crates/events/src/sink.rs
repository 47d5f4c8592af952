//! Where the writer's bytes go: files, or in tests a disk that runs full.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::Path,
};

/// One file under construction.
pub(crate) trait Sink: Send {
    /// Takes as much of `bytes` as it can and says how much.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file back to `length` bytes; writing goes on there.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// Where new files come from.
pub(crate) trait Storage: Send {
    /// A new file; fails with [`io::ErrorKind::AlreadyExists`] when there is one.
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
