//! Output of the measurements: lines of JSON or tables, and a folder of files.

use crate::{
    failure::Failure,
    folder::{unwritable, write_table},
    terminal::{show, width},
};
use evb::bench::Measured;
use evb_record::{Benchmark, BenchmarkSamples, Parameters};
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

/// The file of the records in the folder of the results.
pub(super) const RECORDS: &str = "records.jsonl";

/// All measurements, and the results derived from them.
pub(super) struct Results {
    pub(super) records: Vec<Benchmark>,
    pub(super) parameters: Vec<Parameters>,
    samples: Vec<BenchmarkSamples>,
}

impl Results {
    /// The measurements of all transports together.
    pub(super) fn new(measured: Vec<Measured>) -> Self {
        let samples = measured.iter().map(samples).collect();
        let records: Vec<_> = measured.into_iter().map(|row| row.record).collect();
        let mut transports: Vec<&str> = Vec::new();
        for record in &records {
            if !transports.contains(&record.transport.as_str()) {
                transports.push(&record.transport);
            }
        }
        let parameters = transports.into_iter().map(|name| evb::bench::parameters(name, &records)).collect();
        Self { records, parameters, samples }
    }

    /// Prints the tables, or the records and then the parameters, one per line.
    pub(super) fn print(&self, as_json: bool) -> Result<(), Failure> {
        match as_json {
            true => print!("{}{}", self.record_lines()?, self.parameter_lines()?),
            false => show(&evb_report::benchmark_tables(&self.records, &self.parameters, width())),
        }
        Ok(())
    }

    /// Writes records, tables and plots into a folder.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| unwritable(&path, &error))
        };
        write(RECORDS, &self.record_lines()?)?;
        write("parameters.jsonl", &self.parameter_lines()?)?;
        write_table(folder, "table", &evb_report::benchmark_csv(&self.records))?;
        let path = folder.join("samples.csv");
        self.write_samples(&path).map_err(|error| unwritable(&path, &error))?;
        for plot in evb_report::benchmark_plots(&self.records, &self.parameters, &self.samples) {
            write(&format!("{}.svg", plot.name), &plot.svg)?;
        }
        Ok(())
    }

    fn record_lines(&self) -> Result<String, Failure> {
        lines(self.records.iter().map(serde_json::to_string))
    }

    fn parameter_lines(&self) -> Result<String, Failure> {
        lines(self.parameters.iter().map(serde_json::to_string))
    }

    fn write_samples(&self, path: &Path) -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        evb_report::samples_csv(&self.samples, evb_report::MOST_SAMPLES, &mut file)?;
        file.flush()
    }
}

/// One JSON record on each line.
pub(crate) fn lines(records: impl Iterator<Item = serde_json::Result<String>>) -> Result<String, Failure> {
    let lines: Result<Vec<_>, _> = records.collect();
    Ok(lines.map_err(Failure::new)?.into_iter().map(|line| line + "\n").collect())
}

fn samples(row: &Measured) -> BenchmarkSamples {
    let record = &row.record;
    let of_launch = |lists: &Vec<Vec<u64>>| {
        let nodes = (0..).zip(lists.iter().cloned());
        nodes.filter(|(_, times)| !times.is_empty()).collect()
    };
    BenchmarkSamples {
        transport: record.transport.clone(),
        pattern: record.pattern.clone(),
        settings: record.settings.clone(),
        launches: row.raw.iter().map(of_launch).collect(),
    }
}
