//! A series: the same measurements in several launches on one message layer.

use crate::{
    cores::calibrate, driver::NodeResult, error::BenchError, launch::NodeLauncher, measurement::Measurement,
    summary::Row,
};
use evb_record::{Benchmark, CoreToCore};
use std::collections::BTreeSet;

/// The measurements on one layer.
pub struct Series<'a> {
    /// The layer and its nodes.
    pub place: NodeLauncher<'a>,
    /// The measurements, in their order.
    pub measurements: Vec<Measurement>,
    /// Launches of nodes, each of which measures all; a simulation is the same each time, and is launched once.
    pub launches: u32,
}

/// Receiver of the progress of a series.
pub trait Observer {
    /// A measurement begins: number `index` out of `of`.
    fn begin(&mut self, measurement: &Measurement, index: usize, of: usize);

    /// A remark for the user.
    fn note(&mut self, text: &str);

    /// Returns true if the series should stop.
    fn stopped(&self) -> bool;
}

/// One row of a series.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The result.
    pub record: Benchmark,
    /// An even selection of the samples in nanoseconds, for each launch and, within it, each node.
    pub raw: Vec<Vec<Vec<u64>>>,
}

/// Makes all measurements in every launch; returns one row for each measurement, in their order.
///
/// # Errors
/// If the layer does not work here, a node was lost, or the series was stopped.
pub fn run_series(series: &Series<'_>, observer: &mut dyn Observer) -> Result<Vec<Measured>, BenchError> {
    let mut rows: Vec<_> = series.measurements.iter().map(|measurement| row(series, measurement)).collect();
    let layer = &series.place.layer;
    let is_simulated = layer.is_simulated();
    let launches = if is_simulated { 1 } else { series.launches as usize };
    let calibrate = || if is_simulated { None } else { calibrate() };
    let all = rows.len() * launches;
    let numbers: BTreeSet<_> = series.measurements.iter().map(|measurement| measurement.nodes).collect();
    for launch in 0..launches {
        tracing::info!(%layer, launch, of = launches, "launch");
        let mut nodes = series.place.start(numbers.iter().copied(), &mut |text| observer.note(text))?;
        let mut before = calibrate();
        for (index, row) in rows.iter_mut().enumerate() {
            if observer.stopped() {
                return Err(BenchError::Stopped);
            }
            tracing::debug!(
                benchmark = row.measurement.benchmark.name(),
                size = row.measurement.size,
                nodes = row.measurement.nodes,
                "measure"
            );
            observer.begin(row.measurement, launch * series.measurements.len() + index, all);
            let results = nodes.measure(&row.measurement.work());
            row.launches.push(results.map_err(|source| in_measurement(row.measurement, source))?);
            let after = calibrate();
            row.calibrations.extend(before.zip(after));
            before = after;
        }
    }
    Ok(rows.iter().map(|row| Measured { record: row.record(), raw: raw(&row.launches) }).collect())
}

fn row<'a>(series: &Series<'_>, measurement: &'a Measurement) -> Row<'a> {
    let (launches, calibrations) = (Vec::new(), Vec::<(CoreToCore, CoreToCore)>::new());
    let NodeLauncher { layer, cores, .. } = &series.place;
    let is_simulated = layer.is_simulated();
    let cores = if is_simulated { Vec::new() } else { cores.clone() };
    Row { measurement, transport: layer.to_string(), is_simulated, cores, launches, calibrations }
}

fn in_measurement(measurement: &Measurement, source: BenchError) -> BenchError {
    BenchError::Measurement {
        benchmark: measurement.benchmark.name(),
        size: measurement.size,
        nodes: measurement.nodes,
        source: Box::new(source),
    }
}

fn raw(launches: &[Vec<NodeResult>]) -> Vec<Vec<Vec<u64>>> {
    let of_nodes = |nodes: &Vec<NodeResult>| nodes.iter().map(|node| node.times.raw.clone()).collect();
    launches.iter().map(of_nodes).collect()
}
