//! `evb compare`: compare two files of benchmarks for a slowdown.

use super::bench::output::lines;
use crate::{
    failure::Failure,
    terminal::{show, width},
};
use clap::Args;
use evb_record::{Benchmark, Kind};
use serde_json::Value;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
};

/// Longest input line in bytes: a benchmark takes some kilobytes.
const LONGEST_RECORD: u64 = 16 << 20;

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// The records from before: `records.jsonl` of `evb bench --out DIR`, or what `evb bench --json` printed
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The records from now
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The largest difference that does not matter: rows are the same when the true one is surely not larger
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    tolerance: f64,
    /// Print JSON records, one on a line, instead of tables
    #[arg(long)]
    json: bool,
}

/// A percentage as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let valid = number.filter(|number| number.is_finite() && *number >= 0.0);
    valid.map(|number| number / 100.0).ok_or_else(|| "write a percentage, such as 5%".into())
}

pub(crate) fn run(args: &CompareArgs) -> Result<bool, Failure> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let rows = evb_report::compare(&old, &new, args.tolerance);
    match args.json {
        true => print!("{}", lines(rows.iter().map(serde_json::to_string))?),
        false => show(&evb_report::comparison_table(&rows, width())),
    }
    Ok(rows.iter().all(|row| row.good))
}

/// The benchmarks of a file. Parameters are skipped, since they follow from the benchmarks.
fn read(path: &Path) -> Result<Vec<Benchmark>, Failure> {
    const HINT: &str =
        "benchmarks are compared: give records.jsonl of `evb bench --out DIR`, or what `evb bench --json` printed";
    let wrong = |what: String| Failure::with_hint(format!("{}: {what}", path.display()), HINT);
    let mut reader = BufReader::new(File::open(path).map_err(|error| wrong(error.to_string()))?);
    let mut found: Vec<(usize, Benchmark)> = Vec::new();
    for line in 1.. {
        let Some(text) = next_line(&mut reader).map_err(|why| wrong(format!("line {line}: {why}")))? else { break };
        if text.trim().is_empty() {
            continue;
        }
        let Some(row) = benchmark(&text).map_err(|why| wrong(format!("line {line}: {why}")))? else { continue };
        if let Some((first, _)) = found.iter().find(|(_, other)| evb_report::is_same_measurement(&row, other)) {
            return Err(wrong(format!("line {line}: the same measurement as in line {first}")));
        }
        found.push((line, row));
    }
    match found.is_empty() {
        true => Err(wrong("there is no benchmark in it".into())),
        false => Ok(found.into_iter().map(|(_, row)| row).collect()),
    }
}

/// The next line; none at the end of the file.
fn next_line(reader: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let read = reader.take(LONGEST_RECORD + 1).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    if read as u64 > LONGEST_RECORD {
        return Err(format!("longer than a record can be, {} MiB", LONGEST_RECORD >> 20));
    }
    let text = String::from_utf8(line).map_err(|_| "not a text in UTF-8")?;
    Ok((read > 0).then_some(text))
}

/// The benchmark in a line; none if the line holds parameters.
fn benchmark(text: &str) -> Result<Option<Benchmark>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let kind = value.get("kind").cloned().unwrap_or_default();
    match serde_json::from_value(kind.clone()) {
        Ok(Kind::Benchmark) => {
            serde_json::from_value(value).map(Some).map_err(|error| format!("not a benchmark: {error}"))
        }
        Ok(Kind::Parameters) => Ok(None),
        Ok(Kind::Run) => Err("a run is no benchmark: one start of it says nothing of the next".into()),
        Ok(Kind::Simulation) => Err("a simulation is no benchmark: it is the same each time".into()),
        _ => Err(format!("not a benchmark: its kind is {kind}")),
    }
}
