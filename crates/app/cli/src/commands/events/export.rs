//! `evb events export`: fragments or headers in other forms.

use super::{count, event_files};
use crate::{
    failure::Failure,
    output::{self, Output},
};
use clap::{Args, ValueEnum};
use evb_events::{ExportError, ExportSummary};
use evb_record::Outcome;
use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The event files; give all files of a run together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to write: the fragments of each source, the headers of all events, or a table of all fragments
    #[arg(long, value_enum, default_value_t = Format::Raw)]
    format: Format,
    /// Folder of the raw files, or file of the others; headers go to standard output by default
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Compression of a Parquet or Arrow file [default: none]
    #[arg(long, value_enum, value_name = "METHOD", hide_default_value = true)]
    compression: Option<Compression>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// `source-NNN.raw` for each source, with a record for each event: a header, and the payload if there is one
    Raw,
    /// `source-NNN.raw` for each source, payloads back to back; a missing fragment leaves no trace
    Payloads,
    /// A table, one line per fragment
    Csv,
    /// One JSON object per event and line
    Json,
    /// A Parquet file, one row per fragment, with its payload
    Parquet,
    /// An Arrow file (Feather), one row per fragment, with its payload
    Arrow,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compression {
    /// Fastest to write and to read
    None,
    /// A little slower
    Lz4,
    /// Smallest
    Zstd,
}

pub(crate) fn run(args: &ExportArgs) -> Result<Outcome, Failure> {
    let is_table = matches!(args.format, Format::Parquet | Format::Arrow);
    if args.compression.is_some() && !is_table {
        return Err(Failure::with_hint(
            "this format has no compression",
            "leave out `--compression`, or choose `--format parquet` or `--format arrow`",
        ));
    }
    let files = &event_files(&args.files)?;
    let summary = match (args.format, &args.output) {
        (Format::Raw, Some(directory)) => evb_events::export_raw(files, directory),
        (Format::Payloads, Some(directory)) => evb_events::export_payloads(files, directory),
        (Format::Raw | Format::Payloads, None) => {
            return Err(Failure::with_hint("raw files need a folder", "give it with `--output DIR`"));
        }
        (Format::Csv | Format::Json, Some(path)) => {
            let file = File::create_new(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            write_headers(args.format, files, BufWriter::new(file))
        }
        (Format::Csv | Format::Json, None) => match write_headers(args.format, files, BufWriter::new(Output)) {
            // The end of the command tells why, unless the reader has what it wanted.
            Err(ExportError::Table(_)) => return output::check().map(|()| Outcome::Good),
            written => written,
        },
        (Format::Parquet, path) => return export_table(args, files, path.as_deref(), evb_tables::Format::Parquet),
        (Format::Arrow, path) => return export_table(args, files, path.as_deref(), evb_tables::Format::Arrow),
    };
    Ok(print_export(&summary.map_err(Failure::new)?))
}

/// Writes a file that only programs can read.
fn export_table(
    args: &ExportArgs,
    files: &[PathBuf],
    path: Option<&Path>,
    format: evb_tables::Format,
) -> Result<Outcome, Failure> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else {
        return Err(Failure::with_hint(
            "this format is not for a terminal or a pipe: it needs a file",
            "give it with `--output FILE`",
        ));
    };
    let compression = match args.compression.unwrap_or(Compression::None) {
        Compression::None => evb_tables::Compression::None,
        Compression::Lz4 => evb_tables::Compression::Lz4,
        Compression::Zstd => evb_tables::Compression::Zstd,
    };
    let options = evb_tables::TableOptions { format, compression };
    let summary = evb_tables::export_table(files, path, options).map_err(|error| match error.hint() {
        Some(hint) => Failure::with_hint(&error, hint),
        None => Failure::new(&error),
    })?;
    if summary.duplicates > 0 {
        let copies = if summary.duplicates == 1 { "copy" } else { "copies" };
        eprintln!("evb: {} further {copies} of events left out", summary.duplicates);
    }
    Ok(print_export(&summary))
}

/// Says what was exported. Good if nothing was damaged.
fn print_export(summary: &ExportSummary) -> Outcome {
    eprintln!(
        "evb: exported {} events, {} fragments, {} payload bytes",
        summary.events, summary.fragments, summary.payload_bytes
    );
    if summary.apart > 0 {
        eprintln!("evb: and {} that belong to no event", count(summary.apart, "fragment"));
    }
    if summary.left_out > 0 {
        let files = count(summary.left_out, "file");
        eprintln!(
            "evb: {files} of fragments that belong to no event left out; the formats csv, json, parquet and arrow have them"
        );
    }
    if summary.damaged + summary.lost > 0 {
        eprintln!(
            "evb: {} events are damaged and {} are left out; `evb events verify` tells which",
            summary.damaged, summary.lost
        );
    }
    (summary.damaged + summary.lost == 0).into()
}

fn write_headers(format: Format, files: &[PathBuf], mut output: impl Write) -> Result<ExportSummary, ExportError> {
    let summary = match format {
        Format::Json => evb_events::export_json(files, &mut output)?,
        _ => evb_events::export_csv(files, &mut output)?,
    };
    output.flush().map_err(ExportError::Table)?;
    Ok(summary)
}
