//! `evb compare`: compare two files of benchmarks, or of runs and simulations.

use super::bench::output::lines;
use crate::{
    failure::Failure,
    terminal::{show, width},
};
use clap::Args;
use evb_record::{Benchmark, Outcome, Planning, Record, RecordKind};
use evb_report::is_same_measurement;
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
    /// The records from before: `records.jsonl` of `evb bench --out DIR`, or what `--json` of `evb bench`, `evb run` or `evb
    /// simulate` printed
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
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let valid = number.filter(|number| number.is_finite() && *number >= 0.0);
    valid.map(|number| number / 100.0).ok_or_else(|| "write a percentage, such as 5%".into())
}

pub(crate) fn run(args: &CompareArgs) -> Result<Outcome, Failure> {
    match (read(&args.old)?, read(&args.new)?) {
        (Records::Benchmarks(old), Records::Benchmarks(new)) => {
            let rows = evb_report::compare(&old, &new, args.tolerance);
            print(args, rows.iter().map(serde_json::to_string), &evb_report::comparison_table(&rows, width()))?;
            Ok(Outcome::worst(rows.iter().map(|row| row.difference.outcome())))
        }
        (Records::Runs(old), Records::Runs(new)) => {
            let rows = evb_report::compare_runs(&old, &new, args.tolerance);
            print(args, rows.iter().map(serde_json::to_string), &evb_report::run_comparison_table(&rows, width()))?;
            Ok(Outcome::worst(rows.iter().map(|row| row.difference.outcome())))
        }
        (Records::Plans(_), _) | (_, Records::Plans(_)) => Err(Failure::with_hint("plans are not compared", HINT)),
        _ => Err(Failure::with_hint("benchmarks cannot be compared with runs", HINT)),
    }
}

/// Prints the rows as JSON, or their table.
fn print(
    args: &CompareArgs,
    rows: impl Iterator<Item = serde_json::Result<String>>,
    table: &str,
) -> Result<(), Failure> {
    match args.json {
        true => print!("{}", lines(rows)?),
        false => show(table),
    }
    Ok(())
}

const HINT: &str = "give two files of one kind: records.jsonl of `evb bench --out DIR` or of `evb simulate --out DIR`, or \
                    what `evb bench`, `evb run` or `evb simulate` with `--json` printed";

/// The records of a file.
pub(crate) enum Records {
    Benchmarks(Vec<Benchmark>),
    Runs(Vec<Record>),
    Plans(Vec<Planning>),
}

/// One record of a file.
enum Found {
    Benchmark(Box<Benchmark>),
    Run(Box<Record>),
    Plan(Box<Planning>),
    /// Parameters, which follow from the benchmarks.
    Nothing,
}

/// The records of a file.
pub(crate) fn read(path: &Path) -> Result<Records, Failure> {
    let wrong = |what: String| Failure::with_hint(format!("{}: {what}", path.display()), HINT);
    let mut reader = BufReader::new(File::open(path).map_err(|error| wrong(error.to_string()))?);
    let (mut benchmarks, mut runs): (Vec<(usize, Benchmark)>, Vec<Record>) = (Vec::new(), Vec::new());
    let mut plans = Vec::new();
    for line in 1.. {
        let Some(text) = next_line(&mut reader).map_err(|why| wrong(format!("line {line}: {why}")))? else { break };
        if text.trim().is_empty() {
            continue;
        }
        match record(&text).map_err(|why| wrong(format!("line {line}: {why}")))? {
            Found::Benchmark(row) => {
                if let Some((first, _)) = benchmarks.iter().find(|(_, other)| is_same_measurement(&row, other)) {
                    return Err(wrong(format!("line {line}: the same measurement as in line {first}")));
                }
                benchmarks.push((line, *row));
            }
            Found::Run(run) => runs.push(*run),
            Found::Plan(plan) => plans.push(*plan),
            Found::Nothing => {}
        }
    }
    match (benchmarks.is_empty(), runs.is_empty(), plans.is_empty()) {
        (true, true, true) => Err(wrong("it has no record".into())),
        (true, false, true) => Ok(Records::Runs(runs)),
        (false, true, true) => Ok(Records::Benchmarks(benchmarks.into_iter().map(|(_, row)| row).collect())),
        (true, true, false) => Ok(Records::Plans(plans)),
        _ => Err(wrong("there are records of several kinds in it".into())),
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

/// The record in a line.
fn record(text: &str) -> Result<Found, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let kind = value.get("kind").cloned().unwrap_or_default();
    let broken = |error: serde_json::Error| format!("not a whole record: {error}");
    match serde_json::from_value(kind.clone()) {
        Ok(RecordKind::Benchmark) => serde_json::from_value(value).map(Found::Benchmark).map_err(broken),
        Ok(RecordKind::Run | RecordKind::Simulation) => serde_json::from_value(value).map(Found::Run).map_err(broken),
        Ok(RecordKind::Planning) => serde_json::from_value(value).map(Found::Plan).map_err(broken),
        Ok(RecordKind::Parameters) => Ok(Found::Nothing),
        _ => Err(format!("not a benchmark, a run, a simulation or a plan: its kind is {kind}")),
    }
}
