//! The native part of the Python package `evb`: the library, with Python's types at its edge.
//!
//! Records cross the edge as JSON, columns of events as bytes. The Python side of the package gives both a shape. All
//! that takes long releases the lock of the interpreter, and ends on Ctrl-C.

mod error;
mod events;
mod experiment;
mod mapping;
mod report;
mod run;
mod signals;
mod simulation;
mod sweep_folder;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        error::{EvbError, ExperimentError},
        events::{Events, event_metadata, read_events, read_events_behind},
        experiment::{Experiment, schema},
        mapping::Mapping,
        report::{
            compare_records, explain, explanation, outcome, plan_explanation, plan_plots, plan_summary, plots,
            run_summary, simulation_summary, sweep_table, twin_plots, twin_summary, twin_table, twin_verdict,
        },
        run::Run,
        simulation::simulate,
        sweep_folder::SweepFolder,
    };
    #[pymodule_export]
    const VERSION: &str = evb::VERSION;
}
