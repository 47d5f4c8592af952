//! How well the costs that were fitted to small event builders predict others on this machine: more units, other sizes of fragments,
//! other protocols, and events that are stored.

use crate::{evb, spread};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use xtask::workspace::Workspace;

/// Experiments beside those of [`TWO_BY_TWO`].
const OTHERS: [&str; 4] = ["pull-2x2", "two-by-two-tcp", "demonstrator-8x8", "phased"];
const TWO_BY_TWO: &str = "two-by-two";
/// Readout units and builder units.
const UNITS: [(u16, u16); 4] = [(2, 2), (4, 4), (8, 8), (16, 4)];
/// The same for stored events.
const STORED_UNITS: [(u16, u16); 3] = [(2, 2), (4, 4), (8, 8)];
const SIZES: [&str; 4] = ["256 B", "2 KiB", "16 KiB", "64 KiB"];
const BLOCKS: [&str; 2] = ["1", "\"auto\""];
const FIGURES: [&str; 3] = ["event rate, Hz", "latency median, us", "latency p99, us"];
/// A simulated rate that is off by more is far off.
const FAR: f64 = 0.35;
/// Longest time of a fit, or of a row.
const LIMIT: Duration = Duration::from_secs(300);

/// Compares runs on this machine with simulations.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The transport
    #[arg(long, default_value = "in-process")]
    transport: String,
    /// Workers of a process
    #[arg(long, default_value_t = 2)]
    workers: u16,
    /// Runs of each row; the table has their median
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Store all events
    #[arg(long)]
    stored: bool,
    /// Use this fit in place of a new one
    #[arg(long)]
    fit: Option<PathBuf>,
}

/// An experiment with its changes.
struct Row {
    file: &'static str,
    changes: Vec<String>,
}

/// Simulated over real values of a row, as of [`FIGURES`].
struct Ratios {
    of: [f64; FIGURES.len()],
    /// The machine was as fast as at the fit, and the runs were alike.
    is_comparable: bool,
}

pub(crate) fn compare(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let events = evb::folder(&workspace)?.join("events");
    let fit = match &options.fit {
        Some(fit) => fit.clone(),
        None => evb::fit(&workspace, &[], &options.transport, &options.transport)?,
    };
    println!("{:<64} {:>9} {:>7} {:>6} {:>6}", "simulated over real", "rate, kHz", "rate", "median", "p99");
    let mut all = Vec::new();
    for row in rows(options.stored) {
        let record = row.measure(&workspace, options, &fit, &events)?;
        let ratios = Ratios::of(&record);
        let [rate, middle, late] = ratios.of;
        let real_khz = real(&record, FIGURES[0]) / 1e3;
        let remark = if ratios.is_comparable { "" } else { "  not comparable" };
        println!("{:<64} {real_khz:>9.1} {rate:>7.2} {middle:>6.2} {late:>6.2}{remark}", row.name());
        all.push(ratios);
    }
    summarize(&all);
    Ok(())
}

fn rows(stored: bool) -> Vec<Row> {
    let (units, blocks) = if stored { (&STORED_UNITS[..], &BLOCKS[1..]) } else { (&UNITS[..], &BLOCKS[..]) };
    let others = OTHERS.iter().filter(|_| !stored).map(|&file| Row { file, changes: Vec::new() });
    let sizes = |(readouts, builders): (u16, u16)| {
        SIZES.into_iter().flat_map(move |size| {
            blocks.iter().map(move |block| Row {
                file: TWO_BY_TWO,
                changes: vec![
                    format!("readout.units={readouts}"),
                    format!("builder.units={builders}"),
                    format!("readout.source={{ type = \"fixed\", size = \"{size}\" }}"),
                    format!("trigger.block={block}"),
                ],
            })
        })
    };
    others.chain(units.iter().copied().flat_map(sizes)).collect()
}

impl Row {
    fn name(&self) -> String {
        let values = self.changes.iter().filter_map(|change| change.split_once('='));
        let values = values.map(|(key, value)| match key {
            "readout.source" => value.rsplit_once("= ").map_or(value, |(_, size)| size.trim_end_matches(" }")),
            _ => value,
        });
        let values = values.map(|value| value.trim_matches('"'));
        [self.file].into_iter().chain(values).collect::<Vec<_>>().join(" ")
    }

    /// The record of `evb twin`.
    fn measure(&self, workspace: &Workspace, options: &Options, fit: &Path, events: &Path) -> Result<Value, String> {
        let keep = if options.stored { "all" } else { "none" };
        let common = [
            "trigger.duration=\"300 ms\"".to_owned(),
            format!("transport.type={}", options.transport),
            format!("run.workers={}", options.workers),
            format!("storage={{ keep = \"{keep}\", directory = {events:?} }}"),
        ];
        let mut command = Command::new(workspace.evb());
        command.current_dir(&workspace.root).arg("twin").arg(format!("experiments/{}.toml", self.file));
        command.args(["--json", "--progress", "none", "--turns", &options.turns.to_string(), "--network"]).arg(fit);
        let record =
            evb::record(command.args(self.changes.iter().chain(&common).flat_map(|change| ["--set", change])), LIMIT);
        // Without this the next row waits for the disk. A row that keeps nothing has no folder.
        let _missing = fs::remove_dir_all(events);
        record
    }
}

impl Ratios {
    fn of(record: &Value) -> Self {
        let ratio = |name: &str| figure(record, name)["simulated"].as_f64().unwrap_or(f64::NAN) / real(record, name);
        Self { of: FIGURES.map(ratio), is_comparable: record["agreement"] != "not_comparable" }
    }
}

fn figure<'a>(record: &'a Value, name: &str) -> &'a Value {
    let all = record["figures"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|figure| figure["figure"] == name).unwrap_or(&Value::Null)
}

/// The median of the runs.
fn real(record: &Value, name: &str) -> f64 {
    let values = figure(record, name)["real"].as_array().map_or(&[][..], Vec::as_slice);
    spread::median(&values.iter().filter_map(Value::as_f64).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Prints what the rows have in common.
fn summarize(rows: &[Ratios]) {
    let rates: Vec<f64> = rows.iter().map(|row| row.of[0]).collect();
    let errors: Vec<f64> = rates.iter().map(|rate| 100.0 * (rate - 1.0).abs()).collect();
    let (least, most) = spread::ends(&rates);
    let within = rates.iter().filter(|rate| (1.0 - FAR..=1.0 + FAR).contains(*rate)).count();
    let near = |at: usize| rows.iter().filter(|row| (0.5..=2.0).contains(&row.of[at])).count();
    let comparable = rows.iter().filter(|row| row.is_comparable).count();
    println!(
        "\nrates: median error {:.0} %, simulated over real {least:.2} to {most:.2}, {within} of {} within {:.0} %\n\
         latencies within a factor of two: {} medians, {} 99th percentiles\n{comparable} rows are comparable",
        spread::median(&errors).unwrap_or(f64::NAN),
        rows.len(),
        100.0 * FAR,
        near(1),
        near(2),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_by_its_values() {
        let all = rows(false);
        assert_eq!((all.len(), all[0].name(), all[4].name()), (36, "pull-2x2".into(), "two-by-two 2 2 256 B 1".into()));
        assert_eq!(rows(true).len(), 12);
    }

    #[test]
    fn a_ratio_is_that_of_the_median() {
        let record = serde_json::json!({
            "agreement": "not_comparable",
            "figures": [{ "figure": "event rate, Hz", "real": [3.0, 1.0, 2.0], "simulated": 4.0 }],
        });
        let ratios = Ratios::of(&record);
        assert!(ratios.of[0] == 2.0 && ratios.of[1].is_nan() && !ratios.is_comparable);
    }
}
