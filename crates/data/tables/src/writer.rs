//! The two kinds of files.

use crate::columns::{CHECKSUM, EVENT, NUMBERS, PAYLOAD};
use arrow_array::RecordBatch;
use arrow_ipc::{
    CompressionType,
    writer::{FileWriter, IpcWriteOptions},
};
use arrow_schema::{ArrowError, Schema};
use parquet::{
    arrow::ArrowWriter,
    basic::{self, Encoding, ZstdLevel},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
    },
};
use std::{error::Error, fs::File, io::BufWriter, sync::Arc};

/// Bytes of a row group of a Parquet file, which waits in memory until it is whole.
pub const ROW_GROUP_BYTES: usize = 64 << 20;

/// An error of the system or of the libraries.
pub(crate) type Reason = Box<dyn Error + Send + Sync>;

/// The error of the system, if it is one.
pub(crate) fn of_arrow(error: ArrowError) -> Reason {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        other => other.into(),
    }
}

fn of_parquet(error: ParquetError) -> Reason {
    match error {
        ParquetError::External(error) => error,
        other => other.into(),
    }
}

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// The file of Arrow IPC, which is Feather version 2.
    Arrow,
}

/// Compression of the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// LZ4, which is fast.
    Lz4,
    /// Zstandard, which is small.
    Zstd,
}

/// A file that is being written.
pub(crate) enum TableWriter {
    Parquet(Box<ArrowWriter<File>>),
    Arrow(Box<FileWriter<BufWriter<File>>>),
}

impl TableWriter {
    pub(crate) fn new(
        file: File,
        schema: &Arc<Schema>,
        format: Format,
        compression: Compression,
    ) -> Result<Self, Reason> {
        match format {
            Format::Parquet => {
                let properties = properties(schema, compression);
                let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties)).map_err(of_parquet)?;
                Ok(Self::Parquet(Box::new(writer)))
            }
            Format::Arrow => {
                let options = IpcWriteOptions::default().try_with_compression(arrow_compression(compression));
                let options = options.map_err(of_arrow)?;
                let writer = FileWriter::try_new_with_options(BufWriter::new(file), schema, options);
                Ok(Self::Arrow(Box::new(writer.map_err(of_arrow)?)))
            }
        }
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer) => writer.write(rows).map_err(of_parquet),
            Self::Arrow(writer) => writer.write(rows).map_err(of_arrow),
        }
    }

    /// Writes what makes the file whole.
    pub(crate) fn finish(self) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer) => writer.close().map(drop).map_err(of_parquet),
            Self::Arrow(mut writer) => writer.finish().map_err(of_arrow),
        }
    }
}

/// How Parquet stores the columns: names once in each row group, numbers as differences, and the rest as it is, which
/// costs the least time. The range of events of each row group is stored, so that programs can skip row groups.
fn properties(schema: &Schema, compression: Compression) -> WriterProperties {
    let of_run = schema.metadata().iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("evb {}", env!("CARGO_PKG_VERSION")))
        .set_compression(parquet_compression(compression))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled(EVENT.into(), EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(of_run.collect()));
    for column in NUMBERS {
        properties = properties
            .set_column_dictionary_enabled(column.into(), false)
            .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED);
    }
    for column in [CHECKSUM, PAYLOAD] {
        properties = properties
            .set_column_dictionary_enabled(column.into(), false)
            .set_column_encoding(column.into(), Encoding::PLAIN);
    }
    properties.build()
}

fn parquet_compression(compression: Compression) -> basic::Compression {
    match compression {
        Compression::None => basic::Compression::UNCOMPRESSED,
        Compression::Lz4 => basic::Compression::LZ4_RAW,
        Compression::Zstd => basic::Compression::ZSTD(ZstdLevel::default()),
    }
}

fn arrow_compression(compression: Compression) -> Option<CompressionType> {
    match compression {
        Compression::None => None,
        Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
        Compression::Zstd => Some(CompressionType::ZSTD),
    }
}
