//! The columns of the table.

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use evb_events::{ApartReason, Status};
use std::{collections::HashMap, sync::Arc};

/// The column of the event ids.
pub(crate) const EVENT: &str = "event";

/// The column of the bytes, which is written in a way of its own.
pub(crate) const PAYLOAD: &str = "payload";

/// Columns of numbers that go up from row to row, or are close to each other.
pub(crate) const NUMBERS: [&str; 7] = [EVENT, "builder", "source", "triggered", "source_time", "counter", "mark"];

/// The column of the checksums, which are as good as random.
pub(crate) const CHECKSUM: &str = "checksum";

/// The columns in their order, with what the file says of the run.
pub(crate) fn schema(metadata: HashMap<String, String>) -> Schema {
    let name = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let columns = vec![
        Field::new(EVENT, DataType::UInt64, true),
        Field::new("builder", DataType::UInt16, true),
        Field::new("source", DataType::UInt16, false),
        Field::new("source_name", name(DataType::Int32), true),
        Field::new("status", name(DataType::Int8), false),
        Field::new("complete", DataType::Boolean, true),
        Field::new("triggered", time, true),
        Field::new("source_time", DataType::UInt64, true),
        Field::new("counter", DataType::UInt64, true),
        Field::new("mark", DataType::UInt32, true),
        Field::new("apart", name(DataType::Int8), true),
        Field::new(CHECKSUM, DataType::UInt32, false),
        Field::new("changed", DataType::Boolean, false),
        Field::new(PAYLOAD, DataType::Binary, true),
    ];
    Schema::new_with_metadata(columns, metadata)
}

/// The names of the statuses, in the order of their numbers.
pub(crate) fn statuses() -> ArrayRef {
    Arc::new(StringArray::from_iter_values(Status::ALL.map(Status::name)))
}

/// Place of a status among [`statuses`].
pub(crate) fn status_key(status: Status) -> i8 {
    place(&Status::ALL, status)
}

/// The names of the reasons for which a fragment belongs to no event.
pub(crate) fn reasons() -> ArrayRef {
    Arc::new(StringArray::from_iter_values(ApartReason::ALL.map(ApartReason::name)))
}

/// Place of a reason among [`reasons`].
pub(crate) fn reason_key(reason: ApartReason) -> i8 {
    place(&ApartReason::ALL, reason)
}

fn place<T: PartialEq>(all: &[T], one: T) -> i8 {
    all.iter().position(|other| *other == one).expect("the list has all of them") as i8
}
