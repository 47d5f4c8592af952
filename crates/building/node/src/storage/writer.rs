//! The thread that writes the events of one builder.
//!
//! The thread takes the queued events, writes them, hands them to the kernel at once, and returns them. A slow disk
//! thus costs its builder slots, but never a turn of its node.
//!
//! Events are written by plain calls, not through `io_uring`. ext4 hands buffered writes of a ring to kernel threads,
//! which need the same cores: runs stored as much at 16 KiB and less at 2 KiB, with 8 % more processor time. `O_DIRECT`
//! would save processor time, but needs aligned copies and writes at the rate of the disk, below that of the page
//! cache.

use super::event_file::{EventFile, RoutedEvent, storage_error};
use super::exchange::{Exchange, Task};
use super::pace::Pace;
use crate::error::NodeError;
use bytes::Bytes;
use evb_events::WriteError;
use evb_protocol::Built;
use evb_transport::Waker;
use evb_unit::WRITE_BATCH_BYTES;
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

/// Time after which a batch is handed to the kernel, so that a builder with a slow disk shows progress.
const BATCH_TIME: Duration = Duration::from_millis(100);

/// The writer of one builder.
pub(super) struct EventWriter<F: EventFile> {
    pub(super) builder: u16,
    pub(super) file: F,
    pub(super) exchange: Arc<Exchange>,
    /// Wakes the node.
    pub(super) waker: Waker,
    pub(super) pace: Option<Pace>,
}

impl<F: EventFile> EventWriter<F> {
    /// Writes until the node ends it.
    pub(super) fn run(self) {
        let (exchange, waker, builder) = (self.exchange.clone(), self.waker.clone(), self.builder);
        if catch_unwind(AssertUnwindSafe(|| self.write_and_close())).is_err() {
            let error = NodeError::new(format!("builder unit {builder}: its writer panicked: this is a bug in evb"))
                .hint("please report it, with the text above");
            exchange.end(Err(error), None);
        }
        waker();
    }

    fn write_and_close(mut self) {
        let written = self.write();
        let before = self.file.by_stream();
        let (exchange, builder) = (self.exchange, self.builder);
        let failed = |error: &WriteError| Err(storage_error(builder, error));
        let (outcome, summary) = match written {
            // Not even files are closed: that is what a crash does.
            Ok(Task::Drop) => (Ok(()), before.clone()),
            Ok(_) => match self.file.finish() {
                Ok(summary) => (Ok(()), summary),
                Err(error) => (failed(&error), before.clone()),
            },
            // What was stored before is good, and is closed if that can be.
            Err(error) => (failed(&error), self.file.finish().unwrap_or(before)),
        };
        let (files, events) = summary.iter().fold((0, 0), |all, one| (all.0 + one.files, all.1 + one.events));
        tracing::info!(builder, files, events, "event files closed");
        exchange.end(outcome, Some(summary));
    }

    /// Writes batch after batch. Returns the last task for the files.
    fn write(&mut self) -> Result<Task, WriteError> {
        let (mut waiting, mut batch) = (VecDeque::new(), Vec::new());
        // Where the events begin that the node has not taken back.
        let mut unconfirmed = self.file.place();
        loop {
            let was_idle = match self.exchange.next(&mut waiting) {
                Task::Write { was_idle } => was_idle,
                Task::GoBack => return self.file.go_back(unconfirmed).map(|_| Task::Close),
                task => return Ok(task),
            };
            let place = self.file.place();
            if let Err(error) = self.write_batch(was_idle, &mut waiting, &mut batch) {
                // Events that are never reported as stored are built again, by another builder or in another run.
                if let Err(error) = self.file.go_back(place) {
                    tracing::warn!(builder = self.builder, %error, "events that are not reported stay in the file");
                }
                return Err(error);
            }
            match self.exchange.confirm(&mut batch, self.file.by_stream()) {
                Ok(all_taken) => unconfirmed = if all_taken { place } else { unconfirmed },
                Err(Task::Drop) => return Ok(Task::Drop),
                Err(Task::GoBack) => return self.file.go_back(unconfirmed).map(|_| Task::Close),
                Err(_) => return self.file.go_back(place).map(|_| Task::Close),
            }
            (self.waker)();
        }
    }

    fn write_batch(
        &mut self,
        was_idle: bool,
        waiting: &mut VecDeque<RoutedEvent>,
        batch: &mut Vec<Built<Bytes>>,
    ) -> Result<(), WriteError> {
        let (began, before, mut bytes) = (Instant::now(), self.file.stored_bytes(), 0);
        if let Some(pace) = self.pace.as_mut().filter(|_| was_idle) {
            pace.idle_until(began);
        }
        while let Some((route, mut event)) = waiting.pop_front() {
            route.streams().try_for_each(|stream| self.file.append(stream, &event))?;
            bytes += payload(&event);
            // The file copies small fragments and refers to large ones until it is flushed. The flush below, or an earlier
            // one, returns the memory of the readout units. Until then the writer waits for nothing but the disk: not
            // for events, not for the gate, not for the pace. So no node waits in vain for memory that is held here.
            event.fragments.clear();
            batch.push(event);
            let paced = self.pace.as_ref().map_or(Duration::ZERO, |pace| pace.time(bytes));
            if bytes >= WRITE_BATCH_BYTES || paced.max(began.elapsed()) >= BATCH_TIME {
                break;
            }
        }
        self.file.flush()?;
        if let Some(pace) = &mut self.pace {
            self.exchange.pause(pace.write(self.file.stored_bytes() - before));
        }
        Ok(())
    }
}

fn payload(event: &Built<Bytes>) -> u64 {
    event.fragments.iter().flatten().map(|fragment| fragment.payload.len() as u64).sum()
}
