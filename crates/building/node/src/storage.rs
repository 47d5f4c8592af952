//! The storage of a builder: it drops finished events, or hands them to the thread that writes.

use crate::VERSION;
use crate::error::NodeError;
use crate::limits;
use crate::run_info::{CLOCK, RunInfo, RunStart};
use bytes::Bytes;
use evb_core::{Bandwidth, EventId, NodeId, SourceId, Time};
use evb_events::{Metadata, WriteError, WriteSummary, WriterOptions};
use evb_experiment::{Keep, Plan, StageLink};
use evb_filter::{Question, Route, StreamId, Units};
use evb_protocol::{Built, FragmentStatus, Region};
use evb_transport::Waker;
use evb_unit::{Store, SuperFragmentSender};
pub(crate) use event_file::storage_error;
use event_file::{EventFile, RoutedEvent};
use exchange::Exchange;
use forward::Forward;
use pace::Pace;
use std::{path::PathBuf, sync::Arc, thread::JoinHandle, time::Duration};
use streams::Streams;
use writer::EventWriter;

mod event_file;
mod exchange;
mod forward;
mod pace;
mod streams;
#[cfg(test)]
mod tests;
mod write_lease;
mod writer;

/// Largest number of files that a report names; the others are counted. A report must stay below the longest line of a
/// control connection.
const NAMED_FILES: usize = 1000;

/// The storage of one builder.
pub(crate) struct Storage {
    keep: Keep,
    builder: u16,
    writer: Option<WriterHandle>,
    /// The events on their way to the second stage, in a builder of the first.
    sender: Option<SuperFragmentSender<Bytes>>,
    /// The event manager is gone.
    is_orphaned: bool,
    file_name: PathBuf,
    /// Names of the streams by id.
    streams: Vec<String>,
    /// Number of streams that get no copies: the first ones.
    own_streams: usize,
    /// The stream that keeps all its events; `None` without filter units.
    quarantine: Option<StreamId>,
    /// The filter units, if there are any.
    pub(crate) filter: Option<Units>,
}

/// The stored events of one stream.
pub(crate) struct StreamSummary {
    pub(crate) name: String,
    /// Its events are copies of those of other streams.
    pub(crate) copies: bool,
    pub(crate) written: WriteSummary,
}

/// The node's side of its writer.
struct WriterHandle {
    exchange: Arc<Exchange>,
    /// The writer, until it has ended.
    thread: Option<JoinHandle<()>>,
    /// Number of events that were handed over and have not come back.
    away: usize,
    /// Events that are not handed over yet.
    fresh: Vec<RoutedEvent>,
    /// The node has announced the end of its events.
    finishing: bool,
}

impl Storage {
    /// Opens the event file of a builder and starts its writer, unless no event is kept. `waker` wakes the node when events are stored.
    pub(crate) fn open(plan: &Plan, text: &str, run: &RunStart, builder: u16, waker: Waker) -> Result<Self, NodeError> {
        let (keep, name) = (plan.storage.keep, file_name(plan, &run.info));
        let file_name = plan.storage.directory.join(&name);
        let streams = plan.filter.streams.clone();
        let quarantine = plan.filter.units.as_ref().map(|_| plan.filter.quarantine());
        let own_streams = plan.filter.own_streams().len();
        let storage = Self {
            keep,
            writer: None,
            sender: None,
            is_orphaned: false,
            file_name,
            builder,
            streams,
            own_streams,
            quarantine,
            filter: None,
        };
        if let StageLink::Outlets { unit, paths } = &plan.link {
            let path = paths[usize::from(builder)].clone();
            let patience = plan.run.peer_timeout.as_duration();
            let forward = Forward::connect(patience, *unit, path).map_err(|error| link_error(builder, &error))?;
            let writer = WriterHandle::start(builder, forward, waker, None, lease(plan))?;
            return Ok(Self { writer: Some(writer), sender: SuperFragmentSender::new(plan), ..storage });
        }
        if keep == Keep::None {
            return Ok(storage);
        }
        let metadata = metadata(plan, text, &run.info);
        let (directory, max_file_bytes) = (plan.storage.directory.clone(), plan.storage.file_size.0);
        let compresses = plan.storage.compresses;
        let options = WriterOptions { directory, name, builder, max_file_bytes, compresses, metadata };
        let file = Streams::create(options, (&storage.streams, own_streams), run.clock)
            .map_err(|error| storage_error(builder, &error))?;
        let pace = slow_disk(plan, builder).map(Pace::new);
        let writer = WriterHandle::start(builder, file, waker, pace, lease(plan))?;
        Ok(Self { writer: Some(writer), ..storage })
    }

    /// Takes note that the event manager is gone. Then the end of the run is not the end of the data: a first stage does not
    /// announce it, and the second continues without its super-fragments.
    pub(crate) fn orphan(&mut self) {
        self.is_orphaned = true;
    }

    /// Number of events that wait for [`hand_over`](Self::hand_over).
    pub(crate) fn fresh(&self) -> usize {
        self.writer.as_ref().map_or(0, |writer| writer.fresh.len())
    }

    /// Hands the latest events to the writer.
    pub(crate) fn hand_over(&mut self) {
        if let Some(writer) = self.writer.as_mut().filter(|writer| !writer.fresh.is_empty()) {
            match writer.finishing {
                // They are not reported as stored.
                true => writer.fresh.clear(),
                false => {
                    writer.away += writer.fresh.len();
                    writer.exchange.hand_over(&mut writer.fresh);
                }
            }
        }
    }

    /// Moves stored events into `sink`: the kernel has their bytes. The node calls this in each round as a sign of
    /// life.
    ///
    /// # Errors
    /// The error that stopped the writer.
    pub(crate) fn take_stored(&mut self, sink: &mut Vec<Built<Bytes>>) -> Result<(), NodeError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.exchange.lease.renew(write_lease::now);
        let before = sink.len();
        writer.exchange.take_stored(sink)?;
        writer.away -= sink.len() - before;
        if let Some(sender) = &mut self.sender {
            let sent = sink.split_off(before);
            sink.extend(sent.into_iter().flat_map(|super_fragment| sender.taken(super_fragment.event.0)));
        }
        Ok(())
    }

    /// True while the writer has events that it will return.
    pub(crate) fn is_writing(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.away > 0)
    }

    /// Ends the writer after the last event, and closes the files. Returns true when this is done; until then it must
    /// be called again.
    ///
    /// # Errors
    /// The error that stopped the writer.
    pub(crate) fn finish(&mut self) -> Result<bool, NodeError> {
        self.hand_over();
        if self.is_orphaned && self.sender.is_some() {
            self.writer = None;
        }
        let Some(writer) = &mut self.writer else { return Ok(true) };
        if !writer.finishing {
            writer.finishing = true;
            writer.exchange.finish();
        }
        match writer.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().map_err(|_| NodeError::new("the writer panicked"))?,
            None if writer.thread.is_some() => return Ok(false),
            None => {}
        }
        writer.exchange.outcome().map(|()| true)
    }

    /// The summary of the stored events: files and bytes of all streams, and each event once.
    pub(crate) fn stored(&self) -> WriteSummary {
        self.by_stream().into_iter().fold(WriteSummary::default(), |all, stream| WriteSummary {
            files: all.files + stream.written.files,
            events: all.events + if stream.copies { 0 } else { stream.written.events },
            bytes: all.bytes + stream.written.bytes,
        })
    }

    /// The summary of the stored events of each stream.
    pub(crate) fn by_stream(&self) -> Vec<StreamSummary> {
        let summaries = self.writer.as_ref().map(|writer| writer.exchange.summary()).unwrap_or_default();
        let of_stream = |(index, (name, written)): (usize, (&String, _))| StreamSummary {
            name: name.clone(),
            copies: index >= self.own_streams,
            written,
        };
        self.streams.iter().zip(summaries).enumerate().map(of_stream).collect()
    }

    /// The names of the first files.
    pub(crate) fn file_names(&self) -> impl Iterator<Item = String> {
        let (name, builder) = (self.file_name.display().to_string(), self.builder);
        let of_stream = move |(index, stream): (usize, StreamSummary)| {
            let name = Streams::file_name(&name, &stream.name, index == 0);
            (0..stream.written.files).map(move |number| format!("{name}-b{builder}-{number:04}.evb"))
        };
        self.by_stream().into_iter().enumerate().flat_map(of_stream).take(NAMED_FILES)
    }

    /// Stops the writer: no write begins and no event counts as stored from now on. A write in progress ends.
    #[cfg(test)]
    pub(crate) fn hold(&self) {
        self.writer.iter().for_each(|writer| writer.exchange.hold());
    }
}

/// Storage with a fence, for a node whose peers may have given it up and rebuild its events.
impl Store<Bytes> for Storage {
    /// Queues an event for the writer, or returns it if it is not kept. Kept events come back from
    /// [`take_stored`](Self::take_stored).
    fn store(&mut self, now: Time, route: Route, built: Built<Bytes>) -> Option<Built<Bytes>> {
        if let (Some(sender), Some(writer)) = (&mut self.sender, &mut self.writer) {
            sender.add(built);
            while let Some((number, bundle)) = sender.pop() {
                let complete = bundle.status == FragmentStatus::Good;
                let (event, fragments) = (EventId(number), vec![Some(bundle)]);
                let super_fragment = Built { event, opened: now, complete, asked: Region::ALL, fragments };
                writer.fresh.push((route.clone(), super_fragment));
            }
            return None;
        }
        let keeps = self.keeps(route.stream, built.event, built.complete);
        let Some(writer) = self.writer.as_mut().filter(|_| keeps) else {
            return Some(built);
        };
        writer.fresh.push((route, built));
        None
    }

    fn keeps(&self, stream: StreamId, event: EventId, complete: bool) -> bool {
        self.sender.is_some() || self.quarantine == Some(stream) || self.keep.keeps(event, complete)
    }

    fn ask(&mut self, _now: Time, question: Question<Bytes>) {
        // Only a selection with filter units asks, and the node has opened them.
        if let Some(units) = &mut self.filter {
            units.ask(question);
        }
    }

    /// True while the storage is held, or if the node was away for longer than its lease.
    fn is_held(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.exchange.lease.is_held())
    }

    fn release(&mut self) {
        self.writer.iter().for_each(|writer| writer.exchange.release());
    }

    /// Drops queued events, and removes from the file events that are written but not yet reported as stored.
    fn fence(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.fresh.clear();
            writer.exchange.fence();
        }
    }
}

impl WriterHandle {
    fn start<F: EventFile>(
        builder: u16,
        file: F,
        waker: Waker,
        pace: Option<Pace>,
        lease: Option<Duration>,
    ) -> Result<Self, NodeError> {
        let exchange = Arc::new(Exchange::new(lease, file.by_stream()));
        let writer = EventWriter { builder, file, exchange: exchange.clone(), waker, pace };
        let thread = Some(limits::spawn(move || writer.run())?);
        Ok(Self { exchange, thread, away: 0, fresh: Vec::new(), finishing: false })
    }
}

impl Drop for WriterHandle {
    /// Simulates a crash if [`Storage::finish`] was not called: the writer ends at once and is not awaited.
    fn drop(&mut self) {
        self.exchange.drop_all();
    }
}

/// Longest absence of a node before its peers give it up; `None` if they never do.
fn lease(plan: &Plan) -> Option<Duration> {
    plan.transport.info().gives_up_peers.then(|| plan.run.peer_timeout.as_duration())
}

/// The rate of a disk that is slow on purpose.
fn slow_disk(plan: &Plan, builder: u16) -> Option<Bandwidth> {
    plan.slow_disk(NodeId(plan.building.builder_nodes().first.0 + builder))
}

/// The first part of the names of a run's files.
pub(crate) fn file_name(plan: &Plan, run: &RunInfo) -> String {
    format!("{}-{}", plan.name, run.number)
}

/// The metadata of a run's files.
pub(crate) fn metadata(plan: &Plan, text: &str, run: &RunInfo) -> Metadata {
    Metadata {
        run: run.number,
        seed: plan.run.seed,
        version: VERSION.into(),
        start: run.start,
        run_type: run.run_type.clone(),
        comment: run.comment.clone(),
        clock: CLOCK.into(),
        experiment: plan.name.clone(),
        sources: (0..plan.building.readout_units).flat_map(|unit| source_names(plan, unit)).collect(),
        text: text.into(),
        ..Metadata::default()
    }
}

/// Descriptions of the sources of a readout unit.
fn source_names(plan: &Plan, unit: u16) -> impl Iterator<Item = String> {
    plan.bundling.sources_of(unit).map(move |source| match plan.bundling.is_masked(SourceId(source)) {
        true => format!("ru{unit}:masked"),
        false => format!("ru{unit}"),
    })
}

fn link_error(builder: u16, error: &WriteError) -> NodeError {
    NodeError::new(format!("builder unit {builder} cannot reach its readout unit in the second stage: {error}"))
}
