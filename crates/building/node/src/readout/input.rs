//! The origin of the fragments of a readout unit, and the memory for them.

use crate::error::NodeError;
use crate::pool::{Extent, Pool};
use bytes::Bytes;
use evb_core::{Counter, EventId, Recording, SourceId};
use evb_protocol::{Arrival, Fault, Fragment, FragmentStatus};
use evb_sources::{FedFile, Feed, LiveSource, ReadOutcome, Source};
use evb_unit::{FragmentSource, bundle::Writer};

/// The origin of fragments, and the memory for them.
pub(super) struct Input {
    pub(super) origin: Origin,
    pub(super) pool: Pool,
    /// Fragments that were set apart, with the reason, until the node takes them.
    pub(super) apart: Vec<(Arrival<Bytes>, Fault)>,
}

pub(super) enum Origin {
    OnDemand(Source),
    Live(LiveSource),
}

impl Input {
    pub(super) const fn new(origin: Origin, pool: Pool) -> Self {
        Self { origin, pool, apart: Vec::new() }
    }

    pub(super) fn recorded(&self) -> Option<&FedFile> {
        match &self.origin {
            Origin::OnDemand(source) => source.recorded(),
            Origin::Live(_) => None,
        }
    }
}

impl FragmentSource<Bytes> for Input {
    type Error = NodeError;

    fn feed(&self) -> Feed {
        match &self.origin {
            Origin::OnDemand(source) => source.feed(),
            Origin::Live(_) => Feed::Live,
        }
    }

    fn recording(&self) -> Option<Recording> {
        self.recorded().map(FedFile::recording)
    }

    type Bundle = Writer<Extent>;

    fn begin_bundle(&mut self, fragments: usize, bytes: usize) -> Writer<Extent> {
        Writer::new(self.pool.extent(bytes), fragments)
    }

    fn read_into(
        &mut self,
        id: SourceId,
        event: EventId,
        bundle: &mut Writer<Extent>,
    ) -> Result<FragmentStatus, NodeError> {
        let Origin::OnDemand(source) = &mut self.origin else { return Err(is_live(id, event)) };
        let outcome = source.read(event, bundle).map_err(|error| source_error(id, &error))?;
        let status = status(outcome);
        bundle.add(event, id, status, source.mark(event));
        Ok(status)
    }

    fn read(&mut self, unit: SourceId, event: EventId, position: u64) -> Result<Fragment<Bytes>, NodeError> {
        let Origin::OnDemand(source) = &mut self.origin else { return Err(is_live(unit, event)) };
        let (mut draft, at) = (self.pool.draft(), EventId(position));
        let outcome = source.read(at, &mut draft).map_err(|error| source_error(unit, &error))?;
        let status = status(outcome);
        let payload = draft.finish();
        let (length, checksum) = (payload.len() as u32, evb_core::checksum(&payload));
        let (mark, counter) = (source.mark(at), source.counter(at).map(Counter::new));
        Ok(Fragment { event, source: unit, length, checksum, mark, counter, status, payload })
    }

    fn release(&mut self, payload: Bytes) {
        self.pool.give(payload);
    }

    fn set_apart(&mut self, arrival: Arrival<Bytes>, reason: Fault) {
        self.apart.push((arrival, reason));
    }
}

const fn status(outcome: ReadOutcome) -> FragmentStatus {
    match outcome {
        ReadOutcome::Good => FragmentStatus::Good,
        ReadOutcome::Corrupted(_) => FragmentStatus::Corrupted,
        ReadOutcome::Missing => FragmentStatus::Missing,
        ReadOutcome::Oversized { .. } => FragmentStatus::Oversized,
    }
}

fn is_live(source: SourceId, event: EventId) -> NodeError {
    NodeError::new(format!("readout unit {source}: a live source cannot be asked for event {event}"))
}

pub(crate) fn source_error(source: SourceId, error: &evb_sources::SourceError) -> NodeError {
    let base = NodeError::new(format!("readout unit {source}: {error}"));
    match error {
        evb_sources::SourceError::Variable { name, .. } => {
            base.hint(format!("set it, as in `{name}=/path/to/data evb run FILE`, or give another folder with `--set data.directory=/path/to/data`"))
        }
        evb_sources::SourceError::Open { .. } => {
            base.hint("data files are looked for in the experiment's data.directory; `--set data.directory=/path/to/data` changes it")
        }
        _ => base,
    }
}
