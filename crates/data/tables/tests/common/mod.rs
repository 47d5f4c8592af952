//! Event files that the tests write, and the rows of the tables made of them.
#![allow(dead_code, reason = "each test file uses its own part")]

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{ArrowDictionaryKeyType, Int8Type, Int32Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type},
};
use arrow_ipc::reader::FileReader;
use bytes::Bytes;
use evb_core::{EventId, Mark, SourceId};
use evb_events::{ApartReason, EventInfo, FragmentRef, Metadata, Status, Writer, WriterOptions};
use evb_tables::{Compression, Format, TableOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
};

/// Every kind of table.
pub(crate) const KINDS: [TableOptions; 6] = [
    TableOptions { format: Format::Parquet, compression: Compression::None },
    TableOptions { format: Format::Parquet, compression: Compression::Lz4 },
    TableOptions { format: Format::Parquet, compression: Compression::Zstd },
    TableOptions { format: Format::Arrow, compression: Compression::None },
    TableOptions { format: Format::Arrow, compression: Compression::Lz4 },
    TableOptions { format: Format::Arrow, compression: Compression::Zstd },
];

/// A row of a table, or what it has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) event: Option<u64>,
    pub(crate) builder: Option<u16>,
    pub(crate) source: u16,
    pub(crate) source_name: Option<String>,
    pub(crate) status: String,
    pub(crate) complete: Option<bool>,
    pub(crate) triggered: Option<i64>,
    pub(crate) source_time: Option<u64>,
    pub(crate) counter: Option<u64>,
    pub(crate) mark: Option<u32>,
    pub(crate) apart: Option<String>,
    pub(crate) checksum: u32,
    pub(crate) changed: bool,
    pub(crate) payload: Option<Vec<u8>>,
}

/// A fragment that a test writes.
pub(crate) type Written = (u16, Status, Option<ApartReason>, Vec<u8>);

pub(crate) fn triggered(id: u64) -> Option<u64> {
    (!id.is_multiple_of(3)).then_some(1_700_000_000_000_000_000 + id)
}

pub(crate) fn source_time(id: u64) -> Option<u64> {
    id.is_multiple_of(4).then_some(u64::MAX - id)
}

fn counter(id: u64, source: u16) -> Option<u64> {
    (source > 0).then_some(u64::MAX - 2 * id)
}

fn mark(id: u64, source: u16) -> Option<u32> {
    (source > 1).then_some(id as u32 % 3564)
}

fn checksum(status: Status, bytes: &[u8]) -> u32 {
    evb_core::checksum(bytes) ^ u32::from(status == Status::Corrupted)
}

/// The fragments of an event with four sources: all statuses, and payloads without a byte.
pub(crate) fn fragments(id: u64) -> Vec<Written> {
    let bytes = |length: u64| (0..length).map(|i| (id * 31 + i) as u8).collect::<Vec<_>>();
    let status = Status::ALL[id as usize % Status::ALL.len()];
    let second = if status == Status::Missing { Vec::new() } else { bytes(id % 40) };
    vec![
        (3, Status::Good, None, bytes(5)),
        (0, Status::Good, None, bytes(id % 3)),
        (1, status, None, second),
        (2, Status::Good, None, Vec::new()),
    ]
}

/// The rows of events of [`fragments`], as builder `builder` stored them.
pub(crate) fn rows(id: u64, builder: u16) -> Vec<Row> {
    let mut fragments = fragments(id);
    fragments.sort_by_key(|fragment| fragment.0);
    let complete = fragments.iter().all(|fragment| fragment.1 == Status::Good);
    fragments.iter().map(|written| row(id, builder, complete, written)).collect()
}

pub(crate) fn row(id: u64, builder: u16, complete: bool, (source, status, apart, bytes): &Written) -> Row {
    let is_apart = apart.is_some();
    Row {
        event: (!is_apart).then_some(id),
        builder: (!is_apart).then_some(builder),
        source: *source,
        source_name: ["ru0", "ru0", "ru1:masked"].get(usize::from(*source)).map(|name| (*name).to_owned()),
        status: status.name().to_owned(),
        complete: (!is_apart).then_some(complete),
        triggered: triggered(id).map(|time| time as i64),
        source_time: source_time(id),
        counter: counter(id, *source),
        mark: mark(id, *source),
        apart: apart.map(|reason| reason.name().to_owned()),
        checksum: checksum(*status, bytes),
        changed: false,
        payload: (*status != Status::Missing).then(|| bytes.clone()),
    }
}

pub(crate) fn metadata() -> Metadata {
    Metadata {
        run: 42,
        seed: 7,
        version: "0.1.0".into(),
        experiment: "sample".into(),
        sources: ["ru0", "ru0", "ru1:masked"].map(str::to_owned).to_vec(),
        text: "name = \"sample\"\n".into(),
        start: 1_700_000_000_000_000_000,
        comment: "lights, \"camera\"".into(),
        ..Metadata::default()
    }
}

pub(crate) fn writer(directory: &Path, builder: u16, metadata: Metadata) -> Writer {
    let (directory, name) = (directory.to_path_buf(), "sample".into());
    Writer::create(WriterOptions { directory, name, builder, max_file_bytes: 4000, compresses: false, metadata })
        .expect("a new file")
}

pub(crate) fn append(writer: &mut Writer, id: u64, fragments: &[Written]) {
    let payloads: Vec<_> = fragments.iter().map(|fragment| Bytes::copy_from_slice(&fragment.3)).collect();
    let given = |((source, status, apart, payload), bytes): (&Written, _)| FragmentRef {
        source: SourceId(*source),
        status: *status,
        checksum: checksum(*status, payload),
        counter: counter(id, *source),
        mark: mark(id, *source).map(Mark::new),
        apart: *apart,
        bytes,
    };
    let given: Vec<_> = fragments.iter().zip(&payloads).map(given).collect();
    let info = EventInfo { id: EventId(id), triggered: triggered(id), source_time: source_time(id) };
    writer.append(info, &given).expect("room on the disk");
}

/// Writes events of [`fragments`] and gives the files in their order.
pub(crate) fn write(directory: &Path, builder: u16, ids: impl IntoIterator<Item = u64>) -> Vec<PathBuf> {
    let mut writer = writer(directory, builder, metadata());
    ids.into_iter().for_each(|id| append(&mut writer, id, &fragments(id)));
    let files = writer.finish().expect("room on the disk").files;
    (0..files).map(|file| directory.join(format!("sample-b{builder}-{file:04}.evb"))).collect()
}

/// The rows of a table, and what it says of the run.
pub(crate) fn read(path: &Path, format: Format) -> (Vec<Row>, HashMap<String, String>) {
    let (batches, said) = match format {
        Format::Parquet => read_parquet(path),
        Format::Arrow => {
            let reader = FileReader::try_new(File::open(path).expect("a table"), None).expect("an Arrow file");
            let schema = reader.schema();
            let said = schema.metadata().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            (reader.map(|batch| batch.expect("a batch")).collect(), said)
        }
    };
    (batches.iter().flat_map(of_batch).collect(), said)
}

fn read_parquet(path: &Path) -> (Vec<RecordBatch>, HashMap<String, String>) {
    let file = File::open(path).expect("a table");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let pairs = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let said = pairs.into_iter().map(|pair| (pair.key, pair.value.unwrap_or_default())).collect();
    (reader.build().expect("rows").map(|batch| batch.expect("a batch")).collect(), said)
}

fn of_batch(batch: &RecordBatch) -> Vec<Row> {
    (0..batch.num_rows()).map(|at| of_row(batch, at)).collect()
}

fn of_row(batch: &RecordBatch, at: usize) -> Row {
    let column = |name: &str| batch.column_by_name(name).filter(|column| column.is_valid(at));
    let u64_of = |name| column(name).map(|column| column.as_primitive::<UInt64Type>().value(at));
    let u32_of = |name| column(name).map(|column| column.as_primitive::<UInt32Type>().value(at));
    let u16_of = |name| column(name).map(|column| column.as_primitive::<UInt16Type>().value(at));
    let bool_of = |name| column(name).map(|column| column.as_boolean().value(at));
    let name_of = |name| column(name).map(|column| text::<Int8Type>(column, at));
    Row {
        event: u64_of("event"),
        builder: u16_of("builder"),
        source: u16_of("source").expect("never null"),
        source_name: column("source_name").map(|column| text::<Int32Type>(column, at)),
        status: name_of("status").expect("never null"),
        complete: bool_of("complete"),
        triggered: column("triggered").map(|column| column.as_primitive::<TimestampNanosecondType>().value(at)),
        source_time: u64_of("source_time"),
        counter: u64_of("counter"),
        mark: u32_of("mark"),
        apart: name_of("apart"),
        checksum: u32_of("checksum").expect("never null"),
        changed: bool_of("changed").expect("never null"),
        payload: column("payload").map(|column| column.as_binary::<i32>().value(at).to_vec()),
    }
}

fn text<K: ArrowDictionaryKeyType>(column: &dyn Array, at: usize) -> String {
    let names = column.as_dictionary::<K>();
    let name = names.key(at).expect("a name");
    names.values().as_string::<i32>().value(name).to_owned()
}
