//! What a builder does with a finished event: write it, or let it go.

use crate::VERSION;
use crate::control::NodeError;
use crate::limits;
use bytes::Bytes;
use evb_core::SourceId;
use evb_events::{FragmentRef, Metadata, Status, WriteError, WriteSummary, Writer, WriterOptions};
use evb_experiment::{Keep, Plan};
use evb_protocol::{Built, Fragment, FragmentStatus};
use std::{io::ErrorKind, path::PathBuf};

/// Files that a report names; the others are counted. A report must stay below the longest line of a control connection.
const NAMED_FILES: u32 = 1000;

/// The storage of one builder.
pub(crate) struct Storage {
    builder: u16,
    keep: Keep,
    writer: Option<Writer>,
    /// Written, but not yet in the hands of the kernel, where it would survive the death of this process.
    pending: Vec<Built<Bytes>>,
    written: WriteSummary,
    file_name: PathBuf,
}

impl Storage {
    /// Opens the event file of a builder, unless nothing is kept. `run` makes the names of a run's files unique.
    pub(crate) fn open(plan: &Plan, text: &str, run: u64, builder: u16) -> Result<Self, NodeError> {
        let name = format!("{}-{run}", plan.name);
        let file_name = plan.storage.directory.join(format!("{name}-b{builder}"));
        let mut storage = Self {
            builder,
            keep: plan.storage.keep,
            writer: None,
            pending: vec![],
            written: WriteSummary::default(),
            file_name,
        };
        if plan.storage.keep != Keep::None {
            let options = writer_options(plan, text, run, name, builder);
            storage.writer = Some(Writer::create(options).map_err(|error| storage_error(builder, &error))?);
        }
        Ok(storage)
    }

    /// Stores an event. It comes back at once when it is not kept, and from [`flush`](Self::flush) otherwise.
    pub(crate) fn store(&mut self, mut built: Built<Bytes>) -> Result<Option<Built<Bytes>>, NodeError> {
        let keep = match self.keep {
            Keep::All => true,
            Keep::None => false,
            Keep::OneIn(n) => !built.complete || built.event.0.is_multiple_of(n),
        };
        let Some(writer) = self.writer.as_mut().filter(|_| keep) else { return Ok(Some(built)) };
        let fragments: Vec<_> = (0..).map(SourceId).zip(&built.fragments).map(fragment_ref).collect();
        writer.append(built.event, &fragments).map_err(|error| storage_error(self.builder, &error))?;
        // The writer has its own copy: the readout units can have their buffers back.
        built.fragments.clear();
        self.pending.push(built);
        Ok(None)
    }

    /// Events that wait for [`flush`](Self::flush).
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Hands everything to the kernel and gives back the events, which may now be called stored.
    pub(crate) fn flush(&mut self) -> Result<impl Iterator<Item = Built<Bytes>>, NodeError> {
        if let Some(writer) = &mut self.writer {
            writer.flush().map_err(|error| storage_error(self.builder, &error))?;
        }
        Ok(self.pending.drain(..))
    }

    /// Closes the files.
    pub(crate) fn finish(&mut self) -> Result<(), NodeError> {
        if let Some(writer) = self.writer.take() {
            self.written = writer.stored();
            self.written = writer.finish().map_err(|error| storage_error(self.builder, &error))?;
        }
        Ok(())
    }

    /// What is stored.
    pub(crate) fn stored(&self) -> WriteSummary {
        self.writer.as_ref().map_or(self.written, Writer::stored)
    }

    /// The names of the first files.
    pub(crate) fn file_names(&self) -> impl Iterator<Item = String> {
        (0..self.stored().files.min(NAMED_FILES)).map(|number| format!("{}-{number:04}.evb", self.file_name.display()))
    }
}

fn writer_options(plan: &Plan, text: &str, run: u64, name: String, builder: u16) -> WriterOptions {
    WriterOptions {
        directory: plan.storage.directory.clone(),
        name,
        builder,
        max_file_bytes: plan.storage.file_size.0,
        metadata: Metadata {
            run,
            seed: plan.run.seed,
            version: VERSION.into(),
            builder,
            file: 0,
            experiment: plan.name.clone(),
            sources: (0..plan.building.readout_units).map(|unit| format!("ru{unit}")).collect(),
            text: text.into(),
        },
    }
}

fn fragment_ref((source, fragment): (SourceId, &Option<Fragment<Bytes>>)) -> FragmentRef<'_> {
    match fragment {
        Some(fragment) => FragmentRef {
            source,
            status: match fragment.status {
                FragmentStatus::Good => Status::Good,
                FragmentStatus::Corrupted => Status::Corrupted,
                FragmentStatus::Missing => Status::Missing,
                FragmentStatus::Oversized => Status::Oversized,
                FragmentStatus::Mismatched => Status::Mismatched,
            },
            checksum: fragment.checksum,
            bytes: &fragment.payload,
        },
        None => FragmentRef { source, status: Status::Missing, checksum: 0, bytes: &[] },
    }
}

fn storage_error(builder: u16, error: &WriteError) -> NodeError {
    let base = NodeError::new(format!("builder unit {builder}: {error}"));
    match error {
        WriteError::Write { source, .. } if source.kind() == ErrorKind::StorageFull => {
            base.hint("free some space, or write elsewhere with `--set storage.directory=DIR`, or keep less with `--set storage.keep.one_in=N`; what was stored before is valid")
        }
        WriteError::Write { source, .. } if source.kind() == ErrorKind::FileTooLarge => {
            base.hint("no file may grow further: raise the limit (`ulimit -f`), or begin new files earlier with `--set storage.file_size=SIZE`; what was stored before is valid")
        }
        WriteError::Write { source, .. } if limits::hint(source).is_some() => base.hint(limits::MORE_FILES),
        WriteError::Write { .. } => base.hint("what was stored before is valid; `--set storage.directory=DIR` writes elsewhere"),
        _ => base,
    }
}
