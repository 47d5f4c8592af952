//! The writer of one builder: a sequence of files, each valid at every moment.

use crate::{
    EventInfo, FragmentRef, Metadata, WriteError,
    file::{OpenFile, record_bytes},
    layout::{MAX_EVENT_BYTES, MAX_FRAGMENTS},
    sink::{Disk, Storage},
};
use std::{fs, path::PathBuf};

/// The files of a writer: their place, size and metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// Folder of the files; created if it does not exist.
    pub directory: PathBuf,
    /// First part of the file names, `NAME-bB-NNNN.evb`, or `NAME-ruU.apart.evb` for fragments that were set apart.
    pub name: String,
    /// Index of the builder unit, counted from 0.
    pub builder: u16,
    /// Size in bytes that a file does not exceed, unless its first event alone does.
    pub max_file_bytes: u64,
    /// Compress the files with Zstandard. All sizes stay those before compression.
    pub compresses: bool,
    /// Metadata of the files; the writer fills in `builder` and `file`.
    pub metadata: Metadata,
}

/// Amount of data that a writer has stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Number of files.
    pub files: u32,
    /// Number of events.
    pub events: u64,
    /// Size of all files in bytes.
    pub bytes: u64,
}

/// A position between two events, to which a writer can [go back](Writer::go_back).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the file.
    file: u32,
    /// Offset of the next event in the file, and number of events before it.
    within: (u64, usize),
}

/// Writes the events of one builder.
///
/// Events wait until they are about 1 MiB. [`flush`](Writer::flush) hands them to the kernel. From then on they survive
/// the end of the process, but not a crash of the machine. Fragments from 8 KiB on are not copied: their memory is held
/// until the kernel has them. Dropping a writer without [`finish`](Writer::finish) is like a crash: events that were not
/// handed over are lost, the others stay valid.
pub struct Writer {
    options: WriterOptions,
    storage: Box<dyn Storage>,
    file: OpenFile,
    /// The amount in the closed files.
    closed: WriteSummary,
}

impl Writer {
    /// Creates the first file, with its header.
    ///
    /// # Errors
    /// [`WriteError::Exists`] if the file exists, [`WriteError::Name`], [`WriteError::MetadataTooLarge`], and
    /// [`WriteError::Write`] for any error of the system.
    pub fn create(options: WriterOptions) -> Result<Self, WriteError> {
        fs::create_dir_all(&options.directory).map_err(|source| WriteError::Write {
            path: options.directory.clone(),
            needed: 0,
            lost: 0,
            source,
        })?;
        Self::create_on(Box::new(Disk { compresses: options.compresses }), options)
    }

    pub(crate) fn create_on(mut storage: Box<dyn Storage>, options: WriterOptions) -> Result<Self, WriteError> {
        if options.name.is_empty() || options.name.contains(['/', '\\', '\0']) {
            return Err(WriteError::Name { name: options.name });
        }
        let file = OpenFile::create(storage.as_mut(), path(&options, 0), &metadata(&options, 0)?)?;
        Ok(Self { options, storage, file, closed: WriteSummary::default() })
    }

    /// Appends an event. It is complete if every fragment is good.
    ///
    /// # Errors
    /// After any error this event is not stored. [`WriteError::TooLarge`] leaves all other events as they were. After
    /// [`WriteError::Write`] the file ends with its last whole event, and `lost` is the number of earlier events that
    /// are not stored either; a later call tries again.
    pub fn append(&mut self, event: impl Into<EventInfo>, fragments: &[FragmentRef<'_>]) -> Result<(), WriteError> {
        let (event, length) = (event.into(), record_bytes(fragments));
        if length > MAX_EVENT_BYTES || fragments.len() > MAX_FRAGMENTS {
            return Err(WriteError::TooLarge { event: event.id, fragments: fragments.len(), bytes: length });
        }
        if self.file.is_closed() || self.file.is_full_for(length, self.options.max_file_bytes) {
            self.roll()?;
        }
        self.file.append(event, length, fragments)
    }

    /// Path of the current file.
    pub fn path(&self) -> PathBuf {
        path(&self.options, self.closed.files)
    }

    /// Number of events that were appended, but not yet handed to the kernel.
    pub fn buffered(&self) -> usize {
        self.file.buffered()
    }

    /// Hands every appended event to the kernel. It does not wait for the disk.
    ///
    /// # Errors
    /// Those of [`append`](Writer::append).
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.file.flush()
    }

    /// Position of the next event, unless it begins a new file.
    pub fn place(&self) -> Place {
        Place { file: self.closed.files, within: self.file.place() }
    }

    /// Removes the events after `place`. Returns false if a file was ended since then: nothing is removed from it or
    /// from the next one.
    ///
    /// # Errors
    /// [`WriteError::Write`] if the file cannot be truncated; nothing more is written to it then.
    pub fn go_back(&mut self, place: Place) -> Result<bool, WriteError> {
        if self.file.is_closed() || place.file != self.closed.files {
            return Ok(false);
        }
        self.file.go_back(place.within).map(|()| true)
    }

    /// The amount stored so far: the events handed to the kernel.
    pub fn stored(&self) -> WriteSummary {
        if self.file.is_closed() {
            return self.closed;
        }
        WriteSummary {
            files: self.closed.files + 1,
            events: self.closed.events + (self.file.events() - self.file.buffered()) as u64,
            bytes: self.closed.bytes + self.file.written(),
        }
    }

    /// Stores everything and closes the last file with its index.
    ///
    /// # Errors
    /// [`WriteError::Write`] and [`WriteError::Torn`]. If only the index does not fit, `lost` is 0 and the file is
    /// valid without it.
    pub fn finish(mut self) -> Result<WriteSummary, WriteError> {
        self.close()?;
        Ok(self.stored())
    }

    fn roll(&mut self) -> Result<(), WriteError> {
        self.close()?;
        let number = self.closed.files;
        let metadata = metadata(&self.options, number)?;
        self.file.succeed(self.storage.as_mut(), path(&self.options, number), &metadata)
    }

    fn close(&mut self) -> Result<(), WriteError> {
        if self.file.is_closed() {
            return Ok(());
        }
        self.file.close()?;
        self.closed.files += 1;
        self.closed.events += self.file.events() as u64;
        self.closed.bytes += self.file.written();
        Ok(())
    }
}

fn path(options: &WriterOptions, number: u32) -> PathBuf {
    let (name, builder) = (&options.name, options.builder);
    options.directory.join(match (options.metadata.readout, number) {
        (None, _) => format!("{name}-b{builder}-{number:04}.evb"),
        (Some(unit), 0) => format!("{name}-ru{unit}.apart.evb"),
        (Some(unit), number) => format!("{name}-ru{unit}-{number:04}.apart.evb"),
    })
}

fn metadata(options: &WriterOptions, number: u32) -> Result<Vec<u8>, WriteError> {
    Metadata { builder: options.builder, file: number, ..options.metadata.clone() }.to_json()
}

#[cfg(test)]
mod tests;
