//! Results as a Parquet file: the columns are those of their CSV, with types.

use crate::{TableError, writer::Reason};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use std::{fs::File, path::Path, str::FromStr, sync::Arc};

/// Writes a table, given as CSV with a line of names, to a Parquet file. A column has the narrowest type that all its
/// cells have: whole numbers, numbers, truth values (`true` and `false`), or text. Empty cells are null; a column of empty
/// cells is text. An existing file is replaced.
///
/// # Errors
/// [`TableError::Write`] if the text is no CSV or the file cannot be written.
pub fn write_results(csv: &str, output: &Path) -> Result<(), TableError> {
    let written = || -> Result<(), Reason> {
        let rows = rows(csv)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let mut writer = ArrowWriter::try_new(File::create(output)?, rows.schema(), Some(properties))?;
        writer.write(&rows)?;
        writer.close()?;
        Ok(())
    };
    written().map_err(|reason| TableError::Write { path: output.to_path_buf(), reason })
}

fn rows(csv: &str) -> Result<RecordBatch, Reason> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names = reader.headers()?.clone();
    let records = reader.records().collect::<Result<Vec<_>, _>>()?;
    let columns = names.iter().enumerate().map(|(index, name)| {
        let cells: Vec<_> = records.iter().map(|record| record.get(index).filter(|cell| !cell.is_empty())).collect();
        (name, column(&cells), true)
    });
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

fn column(cells: &[Option<&str>]) -> ArrayRef {
    if cells.iter().all(Option::is_none) {
        return Arc::new(StringArray::new_null(cells.len()));
    }
    if let Some(values) = parsed::<i64>(cells) {
        Arc::new(Int64Array::from(values))
    } else if let Some(values) = parsed::<f64>(cells) {
        Arc::new(Float64Array::from(values))
    } else if let Some(values) = parsed::<bool>(cells) {
        Arc::new(BooleanArray::from(values))
    } else {
        Arc::new(StringArray::from(cells.to_vec()))
    }
}

/// The values of the cells, if all that are not empty are of this type.
fn parsed<T: FromStr>(cells: &[Option<&str>]) -> Option<Vec<Option<T>>> {
    cells.iter().map(|cell| cell.map(str::parse).transpose().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType::{Boolean, Float64, Int64, Utf8};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn a_column_has_the_type_of_its_cells_and_empty_ones_are_null() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("points.parquet");
        let csv = "size,count,rate_hz,good,nothing\n\"2 kB, at most\",1,,true,\n8 kB,,2.5e3,false,\n";
        write_results(csv, &path).expect("a table");
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).expect("a file")).expect("a table");
        let rows = reader.build().expect("a reader").next().expect("rows").expect("rows");
        let types: Vec<_> = rows.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, [Utf8, Int64, Float64, Boolean, Utf8]);
        assert_eq!(rows, super::rows(csv).expect("rows"));
        assert_eq!(rows.columns().iter().map(|column| column.null_count()).collect::<Vec<_>>(), [0, 1, 1, 0, 2]);
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        assert_eq!(rows("record,link\n").expect("rows").num_columns(), 2);
        let error = write_results("a,b\n1\n", Path::new("/dev/null")).expect_err("a row is too short");
        assert!(error.to_string().starts_with("cannot write /dev/null: "), "{error}");
    }
}
