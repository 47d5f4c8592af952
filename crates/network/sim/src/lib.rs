//! The discrete-event simulator: runs a [`Plan`] over a network in virtual time.
//!
//! It drives the same machines as the real event builder. Events happen in the order of their times. At one time control
//! messages on a separate network come first, then everything in the order in which it was planned; links are given to
//! packets last, in ascending order. Every random draw comes from a seeded stream. So the same plan gives the same bytes.

mod arrivals;
mod background;
mod connections;
mod control;
mod cpu;
mod disk;
mod error;
mod event;
mod filter;
mod input;
mod jitter;
mod lineup;
mod message;
mod net;
mod nic;
mod node;
mod order;
mod packet;
mod parallel;
mod partition_border;
mod peers;
mod queue;
mod simulation;
mod slab;
mod slot_times;
mod stages;
mod statistics;
mod storage;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;

pub use error::SimulateError;
use evb_experiment::{Computers, LocalMessages, Plan, Workload};
use evb_fabric::Control;
use evb_protocol::Shaping;
use evb_record::Record;
pub use simulation::Progress;
use simulation::Simulation;
use std::{io::Write, num::NonZeroUsize, time::Instant};
use trace::Trace;

/// Simulates a plan on at most `threads` cores. `trace` takes one line for each step of a packet. `observe` gets the
/// progress now and then, and returns true to continue. After false, the measurements until then are the result. The record
/// does not depend on the number of threads.
///
/// # Errors
/// If the network or a source of fragments is invalid, or the trace cannot be written.
pub fn simulate(
    plan: &Plan,
    threads: NonZeroUsize,
    trace: Option<Box<dyn Write + Send>>,
    observe: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Record, SimulateError> {
    run(plan, threads, trace, observe, Packets::InTrains)
}

/// How consecutive packets of one message are simulated. The record does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packets {
    /// As one, if nothing ever comes between them.
    InTrains,
    OneByOne,
}

fn run(
    plan: &Plan,
    threads: NonZeroUsize,
    trace: Option<Box<dyn Write + Send>>,
    observe: &mut dyn FnMut(&Progress) -> bool,
    packets: Packets,
) -> Result<Record, SimulateError> {
    let start = Instant::now();
    check_cpu(plan)?;
    if let Some(stages) = &plan.stages {
        return if trace.is_some() {
            Err(SimulateError::TraceOfStages)
        } else {
            stages::simulate(plan, stages, observe)
        };
    }
    let plan = simulated(plan)?;
    let in_partitions =
        if trace.is_none() && plan.network.cpu.is_none() { parallel::run(&plan, threads, observe)? } else { None };
    let mut simulation = match in_partitions {
        Some(simulation) => simulation,
        None => unpartitioned(&plan, trace, observe, packets)?,
    };
    simulation.net.trace.finish().map_err(SimulateError::Trace)?;
    Ok(statistics::record(&simulation, start.elapsed().as_secs_f64()))
}

fn unpartitioned<'a>(
    plan: &'a Plan,
    trace: Option<Box<dyn Write + Send>>,
    observe: &mut dyn FnMut(&Progress) -> bool,
    packets: Packets,
) -> Result<Simulation<'a>, SimulateError> {
    let mut simulation = Simulation::new(plan, Trace::new(trace), packets)?;
    simulation.run(observe);
    if simulation.net.gives_up {
        // A simulation with a trace has no trains.
        simulation = Simulation::new(plan, Trace::new(None), Packets::OneByOne)?;
        simulation.run(observe);
    }
    Ok(simulation)
}

/// The plan of one event builder with filters that a simulation has, if it can be simulated.
fn simulated(plan: &Plan) -> Result<Plan, SimulateError> {
    if plan.control.is_some() && plan.network.config.control == Control::Shared {
        return Err(SimulateError::Control(plan.name.clone()));
    }
    let mut plan = Plan { filter: plan.filter.simulated()?, ..plan.clone() };
    if plan.network.cpu.as_ref().is_some_and(|cpu| !cpu.processes && cpu.computers == Computers::One) {
        // As a run in threads of one process does.
        plan.building.share_caches();
    }
    Ok(plan)
}

/// The processors of computers are modelled for event building, and in memory for what needs no time slots.
fn check_cpu(plan: &Plan) -> Result<(), SimulateError> {
    let Some(cpu) = &plan.network.cpu else { return Ok(()) };
    if let Workload::Traffic(_) = plan.workload {
        return Err(SimulateError::NoCosts("a traffic pattern"));
    }
    if plan.stages.is_some() {
        return Err(SimulateError::NoCosts("one of two stages"));
    }
    let in_slots = matches!(plan.building.shaping, Shaping::BarrelShifter { .. } | Shaping::RateDivision { .. });
    match cpu.messages {
        LocalMessages::Memory if in_slots => Err(SimulateError::SlotsInMemory),
        _ => Ok(()),
    }
}
