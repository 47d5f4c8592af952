//! The fragments of a live source that belong to no event, on their way to a file.
//!
//! A thread writes them, which begins with the first of them. A bounded queue leads to it, so a slow disk never stops the
//! node: what does not fit into the queue or into the file is counted, and the last record of the file has the counts.

use crate::{
    limits,
    run_info::{HostClock, RunStart},
    storage::{file_name, metadata},
};
use bytes::Bytes;
use evb_core::{EventId, SourceId};
use evb_events::{ApartReason, EventInfo, FragmentRef, MAX_EVENTS_PER_FILE, Status, WriteError, Writer, WriterOptions};
use evb_experiment::{Keep, Plan};
use evb_protocol::{Arrival, Fault};
use evb_record::{Finding, FindingKind};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

/// What the files of a unit are opened with in each run.
pub(super) struct ApartOptions {
    plan: Plan,
    text: String,
    unit: SourceId,
}

impl ApartOptions {
    pub(super) fn new(plan: &Plan, text: &str, unit: SourceId) -> Self {
        Self { plan: plan.clone(), text: text.to_owned(), unit }
    }

    /// The options of the file of a run, and its largest size; `None` if fragments are not stored.
    pub(super) fn of_run(&self, run: &RunStart) -> Option<FileOptions> {
        let storage = &self.plan.storage;
        if storage.keep == Keep::None || storage.apart.0 == 0 {
            return None;
        }
        let readout = Some(self.unit.0);
        let writer = WriterOptions {
            directory: storage.directory.clone(),
            name: file_name(&self.plan, &run.info),
            builder: 0,
            max_file_bytes: u64::MAX,
            compresses: storage.compresses,
            metadata: evb_events::Metadata { readout, ..metadata(&self.plan, &self.text, &run.info) },
        };
        let building = &self.plan.building;
        let (queue, queue_bytes) = (building.buffer_events.into(), building.most_buffered().0);
        Some(FileOptions { writer, most: storage.apart.0, queue, queue_bytes })
    }
}

/// The options of the file of one run.
pub(super) struct FileOptions {
    writer: WriterOptions,
    /// Largest number of payload and header bytes.
    most: u64,
    /// Most fragments, and most payload bytes, on their way to the thread: as many as the unit holds for events, because
    /// a source that is given up leaves all of them at once.
    queue: u64,
    queue_bytes: u64,
}

/// A fragment on its way to the file.
struct Queued {
    /// Time of arrival, in nanoseconds since 1970-01-01 UTC.
    arrived: u64,
    reason: ApartReason,
    arrival: Arrival<Bytes>,
}

/// What the node and the thread share.
#[derive(Default)]
struct Shared {
    queued: AtomicU64,
    queued_bytes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Fragments that are not stored, by reason.
    unstored: BTreeMap<ApartReason, u64>,
    /// The file, once it exists.
    path: Option<String>,
    /// The error that ended the file.
    error: Option<String>,
    /// The run ends: the file is closed after the last fragment. Otherwise the thread leaves it as it is.
    closes: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_unstored(&self, reason: ApartReason) {
        *self.state().unstored.entry(reason).or_default() += 1;
    }
}

/// The fragments of one unit in one run that belong to no event.
pub(super) struct ApartStream {
    unit: SourceId,
    clock: HostClock,
    options: Option<FileOptions>,
    /// Bytes and records that the file may still take.
    left: u64,
    records_left: usize,
    /// Most fragments and payload bytes on their way.
    most_queued: (u64, u64),
    shared: Arc<Shared>,
    queue: Option<Sender<Queued>>,
    thread: Option<JoinHandle<()>>,
    is_finishing: bool,
}

impl ApartStream {
    /// Nothing is created before the first fragment.
    pub(super) fn new(options: Option<FileOptions>, clock: HostClock) -> Self {
        Self {
            unit: SourceId(options.as_ref().and_then(|options| options.writer.metadata.readout).unwrap_or(0)),
            clock,
            left: options.as_ref().map_or(0, |options| options.most),
            // One is left for the counts of what is not stored.
            records_left: MAX_EVENTS_PER_FILE - 1,
            most_queued: options.as_ref().map_or((0, 0), |options| (options.queue, options.queue_bytes)),
            options,
            shared: Arc::default(),
            queue: None,
            thread: None,
            is_finishing: false,
        }
    }

    /// Takes a fragment that belongs to no event.
    pub(super) fn put(&mut self, arrival: Arrival<Bytes>, reason: Fault) {
        self.store(arrival, reason_of(reason));
    }

    /// Takes a fragment, or bytes that are none. They are only counted if the file is full, or the thread is behind.
    pub(super) fn store(&mut self, arrival: Arrival<Bytes>, reason: ApartReason) {
        if self.queue.is_none() && !self.open() {
            return;
        }
        let payload = arrival.payload.len() as u64;
        let bytes = evb_events::FRAGMENT_RECORD_BYTES as u64 + payload;
        if self.left < bytes || self.records_left == 0 {
            // A file that ends is easier to read than one of the small fragments alone.
            self.left = 0;
        }
        let Shared { queued, queued_bytes, .. } = &*self.shared;
        let has_room = queued.load(Ordering::Relaxed) < self.most_queued.0
            && queued_bytes.load(Ordering::Relaxed) + payload <= self.most_queued.1;
        let Some(queue) = self.queue.as_ref().filter(|_| self.left > 0 && has_room) else {
            return self.shared.count_unstored(reason);
        };
        queued.fetch_add(1, Ordering::Relaxed);
        queued_bytes.fetch_add(payload, Ordering::Relaxed);
        self.left -= bytes;
        self.records_left -= 1;
        // The thread ends only with the queue.
        let _never_fails = queue.send(Queued { arrived: self.clock.at(arrival.arrived), reason, arrival });
    }

    /// Starts the thread; returns false if fragments are not stored.
    fn open(&mut self) -> bool {
        let Some(options) = self.options.take() else { return false };
        let (queue, items) = channel();
        let (shared, unit) = (self.shared.clone(), self.unit);
        match limits::spawn(move || write(options.writer, unit, &items, &shared)) {
            Ok(thread) => (self.queue, self.thread) = (Some(queue), Some(thread)),
            Err(error) => {
                self.shared.state().error = Some(error.to_string());
                return false;
            }
        }
        true
    }

    /// The file, if there is one.
    pub(super) fn files(&self) -> Vec<String> {
        self.shared.state().path.iter().cloned().collect()
    }

    /// Number of fragments that are not stored, although they should be.
    pub(super) fn unstored(&self) -> u64 {
        self.shared.state().unstored.values().sum()
    }

    /// True from the first call of [`finish`](Self::finish) on: fragments wait for the file of the next run.
    pub(super) const fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    /// What is to be said about the file.
    pub(super) fn finding(&self) -> Option<Finding> {
        let state = self.shared.state();
        let error = state.error.as_ref()?;
        let name = format!("ru{}", self.unit);
        let message = format!("{name} could not store fragments that belong to no event: {error}");
        let hint = "events are not concerned; `--set 'storage.apart=\"0 B\"'` only counts such fragments";
        Some(Finding::new(FindingKind::ApartLost, name, message).hint(hint))
    }

    /// Closes the file after the last fragment; returns true when this is done.
    pub(super) fn finish(&mut self) -> bool {
        self.is_finishing = true;
        if self.queue.is_some() {
            self.shared.state().closes = true;
            self.queue = None;
        }
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

const fn reason_of(fault: Fault) -> ApartReason {
    match fault {
        Fault::Duplicate => ApartReason::Duplicate,
        Fault::OutOfSequence => ApartReason::OutOfSequence,
        Fault::OutOfStep => ApartReason::OutOfStep,
        Fault::Early => ApartReason::Early,
        Fault::Unplaced => ApartReason::Unplaced,
        Fault::Late => ApartReason::Late,
        Fault::Mismatch => ApartReason::Mismatch,
        Fault::Disputed => ApartReason::Disputed,
        Fault::Alone => ApartReason::Alone,
        Fault::Ambiguous => ApartReason::Ambiguous,
        Fault::OutOfWindow => ApartReason::OutOfWindow,
        _ => ApartReason::Other,
    }
}

/// Writes fragments until the queue is closed. After an error, the remaining ones are only counted.
fn write(options: WriterOptions, unit: SourceId, items: &Receiver<Queued>, shared: &Shared) {
    let (mut file, mut records) = (None, 0);
    while let Ok(item) = items.recv() {
        shared.queued.fetch_sub(1, Ordering::Relaxed);
        shared.queued_bytes.fetch_sub(item.arrival.payload.len() as u64, Ordering::Relaxed);
        if shared.state().error.is_some() {
            shared.count_unstored(item.reason);
            continue;
        }
        records += 1;
        if let Err((error, lost)) = append(&mut file, &options, unit, records, &item, shared) {
            shared.state().error = Some(error.to_string());
            (0..=lost).for_each(|_| shared.count_unstored(item.reason));
        }
    }
    let closes = shared.state().closes;
    if let Some(file) = file.filter(|_| closes)
        && let Err(error) = close(file, unit, records, shared)
    {
        shared.state().error.get_or_insert(error.to_string());
    }
}

/// Appends a fragment. It is in the hands of the kernel at once: such fragments are rare, and a crash of the node is one of
/// their reasons.
fn append(
    file: &mut Option<Writer>,
    options: &WriterOptions,
    unit: SourceId,
    record: u64,
    item: &Queued,
    shared: &Shared,
) -> Result<(), (WriteError, u64)> {
    let lost = |error| match error {
        WriteError::Write { lost, .. } => (error, lost),
        error => (error, 0),
    };
    let file = match file {
        Some(file) => file,
        None => {
            let writer = Writer::create(options.clone()).map_err(lost)?;
            shared.state().path = Some(writer.path().display().to_string());
            file.insert(writer)
        }
    };
    let Arrival { number, checksum, mark, status, ref payload, .. } = item.arrival;
    let (source, counter, apart) = (unit, Some(number), Some(item.reason));
    let fragment = FragmentRef { source, status, checksum, counter, mark, apart, bytes: payload };
    let info = EventInfo { id: EventId(record), triggered: Some(item.arrived), source_time: None };
    file.append(info, &[fragment]).and_then(|()| file.flush()).map_err(lost)
}

/// Writes the last record, which has the numbers of fragments that are not stored, and closes the file.
fn close(mut file: Writer, source: SourceId, records: u64, shared: &Shared) -> Result<(), WriteError> {
    let (unstored, nothing) = (shared.state().unstored.clone(), Bytes::new());
    let count = |(reason, count): (&ApartReason, &u64)| FragmentRef {
        counter: Some(*count),
        apart: Some(*reason),
        ..FragmentRef::new(source, Status::Missing, 0, &nothing)
    };
    let counts: Vec<_> = unstored.iter().map(count).collect();
    if !counts.is_empty() {
        file.append(EventId(records + 1), &counts)?;
    }
    file.finish().map(drop)
}

#[cfg(test)]
mod tests;
