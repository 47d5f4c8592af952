//! The records of the experiments of one paper.

use crate::PaperError;
use evb_core::ByteCount;
use evb_record::{LinkRecord, Record, Simulation};
use std::collections::BTreeMap;

/// The records of every experiment of a paper, in the order of its sweep.
#[derive(Clone, Debug, Default)]
pub struct Results {
    of_experiments: BTreeMap<String, Vec<Record>>,
}

impl Results {
    /// Adds all records of an experiment, which is named by the stem of its file.
    pub fn add(&mut self, experiment: &str, records: Vec<Record>) {
        self.of_experiments.insert(experiment.to_owned(), records);
    }

    /// The seed of all records.
    pub(crate) fn seed(&self) -> u64 {
        self.everything().next().map_or(0, |record| record.seed)
    }

    /// The records of all experiments.
    pub(crate) fn everything(&self) -> impl Iterator<Item = &Record> {
        self.of_experiments.values().flatten()
    }

    /// All points of a sweep.
    pub(crate) fn all(&self, experiment: &str) -> Result<&[Record], PaperError> {
        let records = self.of_experiments.get(experiment).filter(|records| !records.is_empty());
        records.map(Vec::as_slice).ok_or_else(|| no_record(experiment, &[]))
    }

    /// The first record of an experiment whose swept keys have these values, written as in the file.
    pub(crate) fn at(&self, experiment: &str, point: &[(&str, &str)]) -> Result<&Record, PaperError> {
        let found = self.all(experiment)?.iter().find(|record| is_at(record, point));
        found.ok_or_else(|| no_record(experiment, point))
    }

    /// One point of a sweep, by its index.
    pub(crate) fn point(&self, experiment: &str, point: usize) -> Result<&Record, PaperError> {
        let record = self.all(experiment)?.get(point);
        record.ok_or_else(|| no_record(experiment, &[("point", &point.to_string())]))
    }

    /// All records whose swept keys have these values.
    pub(crate) fn among(&self, experiment: &str, point: &[(&str, &str)]) -> Result<Vec<&Record>, PaperError> {
        let found: Vec<_> = self.all(experiment)?.iter().filter(|record| is_at(record, point)).collect();
        if found.is_empty() { Err(no_record(experiment, point)) } else { Ok(found) }
    }
}

fn is_at(record: &Record, point: &[(&str, &str)]) -> bool {
    point.iter().all(|(key, value)| record.sweep.get(*key).is_some_and(|swept| swept == value))
}

fn no_record(experiment: &str, point: &[(&str, &str)]) -> PaperError {
    let point: Vec<_> = point.iter().map(|(key, value)| format!("{key}={value}")).collect();
    PaperError::NoRecord { experiment: experiment.to_owned(), point: point.join(" ") }
}

/// The part of a record that only a simulation has.
pub(crate) fn simulation(record: &Record) -> Result<&Simulation, PaperError> {
    record.simulation.as_ref().ok_or_else(|| no_record(&record.experiment, &[]))
}

/// The links between two kinds of ends whose names begin so, such as `leaf` and `h`; an empty text is any of them.
pub(crate) fn links_between<'a>(
    record: &'a Record,
    from: &'a str,
    to: &'a str,
) -> Result<impl Iterator<Item = &'a LinkRecord>, PaperError> {
    let joins = move |name: &str| name.split_once('>').is_some_and(|(a, b)| a.starts_with(from) && b.starts_with(to));
    Ok(simulation(record)?.network.links.iter().filter(move |link| joins(&link.name)))
}

/// The mean latency of a record, in microseconds.
pub(crate) fn mean_us(record: &Record) -> Result<f64, PaperError> {
    record.latency_us.mean.ok_or_else(|| no_record(&record.experiment, &[]))
}

/// The swept size of messages, in bytes.
pub(crate) const SIZE: &str = "readout.source.size";

/// A curve over a swept number of bytes, such as [`SIZE`].
pub(crate) fn curve<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    key: &str,
    height: impl Fn(&Record) -> f64,
) -> Vec<(f64, f64)> {
    let swept = |record: &Record| record.sweep.get(key)?.parse().ok().map(|ByteCount(bytes)| bytes as f64);
    records.into_iter().filter_map(|record| Some((swept(record)?, height(record)))).collect()
}

/// Mean payload per destination in MB/s.
pub(crate) fn per_destination(record: &Record) -> f64 {
    record.throughput_bytes_per_s / 1e6 / record.per_destination_bytes_per_s.len() as f64
}

/// Efficiency of a simulation in per cent of the full performance.
pub(crate) fn efficiency(record: &Record) -> f64 {
    record.simulation.as_ref().map_or(0.0, |simulation| simulation.efficiency * 100.0)
}
