//! Runs as a Parquet file, for programs that analyse many of them.

use super::RunRow;
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::Result,
    file::writer::{SerializedFileWriter, SerializedRowGroupWriter},
    schema::parser::parse_message_type,
};
use std::{io::Write, sync::Arc};

/// The columns, named as in the registry. Times are seconds since 1970; only `ended`, `good` and `verdict` may be empty.
const COLUMNS: &str = "message runs {
    required int64 number;
    required binary type (UTF8);
    required binary experiment (UTF8);
    required binary comment (UTF8);
    required binary stop_comment (UTF8);
    required binary state (UTF8);
    required double started;
    optional double ended;
    required int64 events;
    required double event_rate_hz;
    required int64 bytes;
    optional boolean good;
    optional binary verdict (UTF8);
    required binary host (UTF8);
    required binary version (UTF8);
}";

type Rows<'a, W> = SerializedRowGroupWriter<'a, W>;

/// Writes runs as a Parquet file of one row group.
///
/// # Errors
/// The file cannot be written.
pub fn parquet<W: Write + Send>(runs: &[RunRow], file: W) -> Result<()> {
    let mut file = SerializedFileWriter::new(file, Arc::new(parse_message_type(COLUMNS)?), Arc::default())?;
    let mut rows = file.next_row_group()?;
    let whole = |of: fn(&RunRow) -> u64| runs.iter().map(|run| of(run) as i64).collect::<Vec<_>>();
    let text = |of: fn(&RunRow) -> &str| runs.iter().map(|run| ByteArray::from(of(run))).collect::<Vec<_>>();
    required::<Int64Type, _>(&mut rows, &whole(|run| run.number))?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.run_type))?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.experiment))?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.comment))?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.stop_comment))?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.state))?;
    required::<DoubleType, _>(&mut rows, &runs.iter().map(|run| run.started).collect::<Vec<_>>())?;
    optional::<DoubleType, _>(&mut rows, &runs.iter().map(|run| run.ended).collect::<Vec<_>>())?;
    required::<Int64Type, _>(&mut rows, &whole(|run| run.events))?;
    required::<DoubleType, _>(&mut rows, &runs.iter().map(|run| run.event_rate_hz).collect::<Vec<_>>())?;
    required::<Int64Type, _>(&mut rows, &whole(|run| run.bytes))?;
    optional::<BoolType, _>(&mut rows, &runs.iter().map(|run| run.good).collect::<Vec<_>>())?;
    let verdict = |run: &RunRow| run.verdict.map(|verdict| ByteArray::from(verdict.key()));
    optional::<ByteArrayType, _>(&mut rows, &runs.iter().map(verdict).collect::<Vec<_>>())?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.host))?;
    required::<ByteArrayType, _>(&mut rows, &text(|run| &run.version))?;
    rows.close()?;
    file.close().map(drop)
}

fn required<T: DataType, W: Write + Send>(rows: &mut Rows<'_, W>, values: &[T::T]) -> Result<()> {
    column::<T, W>(rows, values, None)
}

fn optional<T: DataType, W: Write + Send>(rows: &mut Rows<'_, W>, values: &[Option<T::T>]) -> Result<()> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let there: Vec<_> = values.iter().flatten().cloned().collect();
    column::<T, W>(rows, &there, Some(&levels))
}

/// Writes the next column; `levels` say which values are there, if some may be missing.
fn column<T: DataType, W: Write + Send>(rows: &mut Rows<'_, W>, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
    // As many as the schema has.
    let Some(mut column) = rows.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
