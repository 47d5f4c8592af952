//! A series: the same measurements in several launches on one message layer.

use crate::{
    cell::Cell,
    cores::calibrate,
    driver::NodeResult,
    fleet::{Fleet, Launch, Processes, Threads},
    summary::Row,
};
use evb_record::{Benchmark, CoreToCore};
use evb_transports::LayerChoice;
use std::collections::BTreeSet;

/// What is measured on one layer.
pub struct Series<'a> {
    /// The layer.
    pub layer: LayerChoice,
    /// What is measured.
    pub cells: Vec<Cell>,
    /// How often nodes are started anew to measure all of it; a simulation is the same each time, and done once.
    pub launches: u32,
    /// The cores that nodes are pinned to in turn; none are pinned when it is empty.
    pub cores: Vec<u16>,
    /// How processes come about; threads need none.
    pub launch: &'a dyn Fn() -> Launch<'a>,
}

/// Is told how a series goes on.
pub trait Observer {
    /// A measurement begins: which one of how many of the series.
    fn begin(&mut self, cell: &Cell, index: usize, of: usize);

    /// Something that people should know.
    fn note(&mut self, text: &str);

    /// Whether to stop.
    fn stopped(&self) -> bool;
}

/// One row of a series.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The result.
    pub record: Benchmark,
    /// An even choice of the samples in nanoseconds, for each launch and there for each node.
    pub raw: Vec<Vec<Vec<u64>>>,
}

/// Measures everything in every launch; one row for each cell, in their order.
///
/// # Errors
/// What went wrong, and where: the layer does not work here, a node went away, or it was stopped.
pub fn run_series(series: &Series<'_>, observer: &mut dyn Observer) -> Result<Vec<Measured>, String> {
    let mut rows: Vec<_> = series.cells.iter().map(|cell| row(series, cell)).collect();
    let is_simulated = series.layer.is_simulated();
    let launches = if is_simulated { 1 } else { series.launches as usize };
    let calibrate = || if is_simulated { None } else { calibrate() };
    let all = rows.len() * launches;
    for launch in 0..launches {
        let mut fleet = start(series, observer)?;
        let mut before = calibrate();
        for (index, row) in rows.iter_mut().enumerate() {
            if observer.stopped() {
                return Err("stopped".into());
            }
            observer.begin(row.cell, launch * series.cells.len() + index, all);
            row.launches.push(fleet.measure(row.cell).map_err(|why| format!("{}: {why}", describe(row.cell)))?);
            let after = calibrate();
            row.calibrations.extend(before.zip(after));
            before = after;
        }
    }
    Ok(rows.iter().map(|row| Measured { record: row.record(), raw: raw(&row.launches) }).collect())
}

fn row<'a>(series: &Series<'_>, cell: &'a Cell) -> Row<'a> {
    let (launches, calibrations) = (Vec::new(), Vec::<(CoreToCore, CoreToCore)>::new());
    let is_simulated = series.layer.is_simulated();
    let cores = if is_simulated { Vec::new() } else { series.cores.clone() };
    Row { cell, transport: series.layer.to_string(), is_simulated, cores, launches, calibrations }
}

fn start<'a>(series: &Series<'a>, observer: &mut dyn Observer) -> Result<Box<dyn Fleet + 'a>, String> {
    if !series.layer.is_one_process() {
        return Ok(Box::new(Processes::start(&(series.launch)())?));
    }
    let nodes: BTreeSet<_> = series.cells.iter().map(|cell| cell.nodes).collect();
    let (layer, cores) = (series.layer.clone(), series.cores.clone());
    Ok(Box::new(Threads::prepare(layer, cores, nodes, &mut |text| observer.note(text))?))
}

fn describe(cell: &Cell) -> String {
    format!("{} of {} B on {} nodes", cell.benchmark.name(), cell.size, cell.nodes)
}

fn raw(launches: &[Vec<NodeResult>]) -> Vec<Vec<Vec<u64>>> {
    let of_nodes = |nodes: &Vec<NodeResult>| nodes.iter().map(|node| node.times.raw.clone()).collect();
    launches.iter().map(of_nodes).collect()
}
