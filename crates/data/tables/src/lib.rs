//! Stored events as tables of other programs: a Parquet file, or an Arrow file (also called Feather, version 2). Results,
//! which have a table as CSV, become a Parquet file by [`write_results`].
//!
//! [`export_table`] writes one row for each fragment, payload included. The columns are described in
//! `docs/reference/event-file.md`; only the module `columns` knows them. The crate is separate from `evb-events` because
//! of the libraries that it needs.
//!
//! Rows are written in batches, so memory does not grow with the files: see [`BATCH_BYTES`].

mod columns;
mod error;
mod export;
mod results;
mod rows;
mod run;
mod writer;

pub use error::TableError;
pub use export::{TableOptions, export_table};
pub use results::write_results;
pub use rows::{BATCH_BYTES, BATCH_ROWS};
pub use writer::{Compression, Format, ROW_GROUP_BYTES};
