//! Input of a readout unit: any source whose fragments can be requested by event.

use crate::{
    SourceError, SourceSpec,
    fed::{FedFault, FedFile},
    hits::Hits,
    path::resolve,
    payload,
    size::SizeModel,
    spec::Feed,
};
use bytes::BytesMut;
use evb_core::{EventId, Mark};
use std::path::{Path, PathBuf};

/// Options for opening a source, beside its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Folder that relative paths start from.
    pub data_directory: PathBuf,
    /// Index of the readout unit, from 0.
    pub unit: u16,
    /// Seed of the run.
    pub seed: u64,
    /// Largest fragment in bytes.
    pub max_fragment: u32,
}

/// A buffer for a fragment.
pub trait Room {
    /// Memory for a fragment of this length, with any content. The earlier content is lost.
    fn room(&mut self, length: usize) -> &mut [u8];
}

/// The fastest buffer keeps its length from one fragment to the next: it need not be cleared.
impl Room for BytesMut {
    fn room(&mut self, length: usize) -> &mut [u8] {
        self.resize(length, 0);
        self
    }
}

/// The outcome of reading one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// A good fragment.
    Good,
    /// A damaged fragment: the buffer holds its bytes unchanged, at most the largest fragment.
    Corrupted(FedFault),
    /// The source has no fragment of this event; the buffer is empty.
    Missing,
    /// A good fragment above the largest size: the buffer holds its first bytes.
    Oversized {
        /// Its whole size in bytes.
        bytes: u32,
    },
}

/// The fragments of a readout unit on demand.
#[derive(Debug)]
pub struct Source(Kind);

#[derive(Debug)]
enum Kind {
    Generated { sizes: SizeModel, seed: u64, unit: u16 },
    Hits(Hits),
    Recorded { file: FedFile, max_fragment: u32 },
    Live,
}

impl Source {
    /// Opens the source of readout unit `options.unit`. A live source opens, but has no fragments: see
    /// [`LiveSource`](crate::LiveSource).
    ///
    /// # Errors
    /// If a parameter is impossible, or a file does not exist, cannot be read or is bad.
    pub fn open(spec: &SourceSpec, options: &OpenOptions) -> Result<Self, SourceError> {
        Ok(Self(match spec {
            SourceSpec::CmsFed { .. } => Kind::Recorded {
                file: open_recorded(spec, &options.data_directory)?,
                max_fragment: options.max_fragment,
            },
            SourceSpec::Live(_) => Kind::Live,
            _ => match Hits::open(spec, options)? {
                Some(hits) => Kind::Hits(hits),
                None => {
                    let sizes = SizeModel::open(spec, options)?;
                    Kind::Generated { sizes, seed: options.seed, unit: options.unit }
                }
            },
        }))
    }

    /// The extent of the source.
    pub fn feed(&self) -> Feed {
        match &self.0 {
            Kind::Generated { sizes, .. } => sizes.feed(),
            Kind::Hits(hits) => hits.feed(),
            Kind::Recorded { file, .. } => Feed::Finite { events: file.events() },
            Kind::Live => Feed::Live,
        }
    }

    /// Reads the fragment of `event` into `buffer`. Any event may be read again.
    ///
    /// # Errors
    /// If the file cannot be read, or the source is live.
    pub fn read(&mut self, event: EventId, buffer: &mut impl Room) -> Result<ReadOutcome, SourceError> {
        match &mut self.0 {
            Kind::Generated { sizes, seed, unit } => Ok(generate(sizes, *seed, *unit, event, buffer)),
            Kind::Hits(hits) => hits.read(event, buffer),
            Kind::Recorded { file, max_fragment } => read_recorded(file, *max_fragment, event, buffer),
            Kind::Live => Err(SourceError::Live),
        }
    }

    /// The mark of the fragment of `event`; generated fragments have none.
    pub fn mark(&self, event: EventId) -> Option<Mark> {
        self.recorded()?.mark(event.0)
    }

    /// The number that the source gave the fragment of `event`: the level-1 id of a recording.
    pub fn counter(&self, event: EventId) -> Option<u64> {
        self.recorded()?.counter(event.0)
    }

    /// Number of recorded hits before the first slice: they belong to no event.
    pub const fn early_hits(&self) -> u64 {
        match &self.0 {
            Kind::Hits(hits) => hits.early(),
            _ => 0,
        }
    }

    /// The recorded file behind the source, if it is one.
    pub const fn recorded(&self) -> Option<&FedFile> {
        match &self.0 {
            Kind::Recorded { file, .. } => Some(file),
            _ => None,
        }
    }
}

fn generate(sizes: &mut SizeModel, seed: u64, unit: u16, event: EventId, buffer: &mut impl Room) -> ReadOutcome {
    let Some(size) = sizes.size(event) else {
        buffer.room(0);
        return ReadOutcome::Missing;
    };
    payload::fill(buffer.room(size as usize), seed, event, unit);
    ReadOutcome::Good
}

/// Opens the file of a source of type `cms-fed`.
pub(crate) fn open_recorded(spec: &SourceSpec, data_directory: &Path) -> Result<FedFile, SourceError> {
    let SourceSpec::CmsFed { file, source_id, refuse_damaged } = spec else {
        unreachable!("called for a file of recorded fragments only")
    };
    let opened = FedFile::open(resolve(file, data_directory)?, *source_id)?;
    if *refuse_damaged { opened.undamaged() } else { Ok(opened) }
}

fn read_recorded(
    file: &mut FedFile,
    max_fragment: u32,
    event: EventId,
    buffer: &mut impl Room,
) -> Result<ReadOutcome, SourceError> {
    let Some(n) = file.find(event.0) else {
        buffer.room(0);
        return Ok(ReadOutcome::Missing);
    };
    let entry = file.entries()[n];
    let length = entry.length.min(max_fragment) as usize;
    if let Err(error) = file.read(n, buffer.room(length)) {
        return Err(SourceError::Read { path: file.path().to_owned(), error });
    }
    Ok(match entry.fault {
        Some(fault) => ReadOutcome::Corrupted(fault),
        None if entry.length > max_fragment => ReadOutcome::Oversized { bytes: entry.length },
        None => ReadOutcome::Good,
    })
}
