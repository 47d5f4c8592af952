//! Rows that wait to be written together.

use crate::{columns, run::SourceNames};
use arrow_array::{
    ArrayRef, DictionaryArray, RecordBatch,
    builder::{
        BinaryBuilder, BooleanBuilder, Int8Builder, Int32Builder, TimestampNanosecondBuilder, UInt16Builder,
        UInt32Builder, UInt64Builder,
    },
};
use arrow_schema::{ArrowError, SchemaRef};
use evb_core::Mark;
use evb_events::{Fragment, Status, StoredEvent};
use std::sync::Arc;

/// Payload bytes of a batch of rows; a larger fragment is a batch of its own.
pub const BATCH_BYTES: usize = 16 << 20;

/// Largest number of rows in a batch.
pub const BATCH_ROWS: usize = 64 << 10;

/// Rows that wait to be written together, by column.
pub(crate) struct Rows {
    schema: SchemaRef,
    source_names: SourceNames,
    statuses: ArrayRef,
    reasons: ArrayRef,
    event: UInt64Builder,
    builder: UInt16Builder,
    source: UInt16Builder,
    source_name: Int32Builder,
    status: Int8Builder,
    complete: BooleanBuilder,
    triggered: TimestampNanosecondBuilder,
    source_time: UInt64Builder,
    counter: UInt64Builder,
    mark: UInt32Builder,
    apart: Int8Builder,
    checksum: UInt32Builder,
    changed: BooleanBuilder,
    payload: BinaryBuilder,
    rows: usize,
    payload_bytes: usize,
}

impl Rows {
    pub(crate) fn new(schema: SchemaRef, source_names: SourceNames) -> Self {
        Self {
            schema,
            source_names,
            statuses: columns::statuses(),
            reasons: columns::reasons(),
            event: UInt64Builder::new(),
            builder: UInt16Builder::new(),
            source: UInt16Builder::new(),
            source_name: Int32Builder::new(),
            status: Int8Builder::new(),
            complete: BooleanBuilder::new(),
            triggered: TimestampNanosecondBuilder::new().with_timezone("UTC"),
            source_time: UInt64Builder::new(),
            counter: UInt64Builder::new(),
            mark: UInt32Builder::new(),
            apart: Int8Builder::new(),
            checksum: UInt32Builder::new(),
            changed: BooleanBuilder::new(),
            payload: BinaryBuilder::new(),
            rows: 0,
            payload_bytes: 0,
        }
    }

    /// Returns true if there is room for a payload of this size.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.rows == 0 || (self.rows < BATCH_ROWS && self.payload_bytes + bytes <= BATCH_BYTES)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds the row of one fragment of `stored`.
    pub(crate) fn push(&mut self, stored: &StoredEvent<'_>, fragment: &Fragment) {
        self.push_event(stored);
        self.source.append_value(fragment.source.0);
        self.source_name.append_option(self.source_names.place(fragment.source));
        self.status.append_value(columns::status_key(fragment.status));
        self.counter.append_option(fragment.counter);
        self.mark.append_option(fragment.mark.map(Mark::value));
        self.apart.append_option(fragment.apart.map(columns::reason_key));
        self.checksum.append_value(fragment.checksum);
        self.changed.append_value(stored.changed.contains(&fragment.source));
        let is_absent = fragment.status == Status::Missing && fragment.bytes.is_empty();
        self.payload.append_option((!is_absent).then_some(&fragment.bytes));
        self.rows += 1;
        self.payload_bytes += fragment.bytes.len();
    }

    /// Adds what all fragments of an event have in common. A time after the year 2262 has no place in the column.
    fn push_event(&mut self, stored: &StoredEvent<'_>) {
        let event = stored.event;
        self.event.append_option((!stored.is_apart).then_some(event.id.0));
        self.builder.append_option(stored.builder);
        self.complete.append_option((!stored.is_apart).then_some(event.complete));
        self.triggered.append_option(event.triggered.and_then(|time| i64::try_from(time).ok()));
        self.source_time.append_option(event.source_time);
    }

    /// Takes the waiting rows.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        // The next batch is about as large: a buffer that grows would be copied each time.
        let next = BinaryBuilder::with_capacity(self.rows, self.payload_bytes);
        let mut payload = std::mem::replace(&mut self.payload, next);
        (self.rows, self.payload_bytes) = (0, 0);
        let source_names = DictionaryArray::try_new(self.source_name.finish(), Arc::clone(&self.source_names.names))?;
        let statuses = DictionaryArray::try_new(self.status.finish(), Arc::clone(&self.statuses))?;
        let reasons = DictionaryArray::try_new(self.apart.finish(), Arc::clone(&self.reasons))?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.event.finish()),
            Arc::new(self.builder.finish()),
            Arc::new(self.source.finish()),
            Arc::new(source_names),
            Arc::new(statuses),
            Arc::new(self.complete.finish()),
            Arc::new(self.triggered.finish()),
            Arc::new(self.source_time.finish()),
            Arc::new(self.counter.finish()),
            Arc::new(self.mark.finish()),
            Arc::new(reasons),
            Arc::new(self.checksum.finish()),
            Arc::new(self.changed.finish()),
            Arc::new(payload.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}
