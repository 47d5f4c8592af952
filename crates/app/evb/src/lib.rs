//! Event building as a library: everything that the `evb` command does, without its arguments and its printing.
//!
//! | to | use |
//! |---|---|
//! | load an experiment file | [`Experiment::load`], which makes a [`Plan`] for each point of its sweep |
//! | describe an experiment without a file | [`Plan::new`] |
//! | see what could surprise | [`surprises`], [`largest`], [`MemoryBound`] |
//! | see the levels of a tree and their oversubscription | [`tree_levels`], [`LevelRates`] |
//! | see the headroom of inputs that ask for pauses | [`headrooms`], [`Headroom`] |
//! | simulate | [`simulate`], or [`Simulations`] for many plans |
//! | keep the records of a sweep, and go on with it | [`SweepFolder`], [`StoredSweep`], [`Shard`], [`merge`], [`Until`] |
//! | simulate a sweep on a cluster | [`ArrayJob`], [`SlurmJob`] |
//! | run, in threads | [`run_in_threads`], or [`Session`] for several runs |
//! | run, in processes | [`Session::processes`], [`join`] |
//! | run traffic without an event manager | [`run_traffic`] |
//! | benchmark message layers | [`mod@bench`], [`simulate_suite`], [`fit`] |
//! | reproduce published values | [`Reproduction`] |
//!
//! All of them return records of `evb_record`: serializable, and all that the tables and plots are made from.
//!
//! ```
//! use evb::{Config, Plan, SourceSpec, simulate};
//! use std::num::NonZeroUsize;
//!
//! let building = Config { events: Some(100), ..Config::new(2, 2) };
//! let plan = Plan::new(building, SourceSpec::Fixed { size: "2 kB".parse()? });
//! let record = simulate(&plan, NonZeroUsize::MIN, None, &mut |_| true)?;
//! assert_eq!(record.events.built, 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acceptance;
mod array_job;
mod difference;
mod error;
mod merging;
mod network_fit;
mod only_simulated;
mod papers;
mod shard;
mod simulated_bench;
mod simulations;
mod slurm;
mod stored_lines;
mod stored_sweep;
mod surprises;
mod sweep_folder;
mod traffic;
mod tree_levels;
mod until;

pub use acceptance::Acceptance;
pub use array_job::{ArrayJob, OpenPart};
pub use error::Error;
/// The communication benchmarks over real message layers.
pub use evb_bench as bench;
pub use evb_core::{Bandwidth, ByteCount, Frequency, NodeId, Span};
pub use evb_experiment::{
    Diagnostics, Experiment, FaultAction, FaultSpec, Keep, Load, NetworkPlan, Other, Place, Plan, ProblemText, RunPlan,
    StageLink, Stages, StoragePlan, TrafficPlan, TriggerPlan, Workload, json_schema,
};
pub use evb_fabric::{Headroom, LevelRates};
pub use evb_filter::{Code, CodeError, JoinError, JoinFilters, Selection, join_builders, serve_library};
pub use evb_node::{
    BufferFill, Children, Command, Distribution, JoinOptions, Live, MemoryBound, NodeError, NodeMachine, NodeMemory,
    NodePresence, Observer, OpenCounts, OpenSession, ProcessOptions, Progress, Ranks, RunError, RunState, Sample,
    SampleFragment, Session, Sizes, Start, Token, Turn, VERSION, host, is_run_number, join, launched, limits,
    run_stages,
};
pub use evb_patterns::{Pattern, TrafficConfig};
pub use evb_protocol::{Assignment, Config, Filter, FirstPhase, Protocol, Shaping, Trigger};
/// The schema of all results.
pub use evb_record as record;
pub use evb_record::Record;
pub use evb_sim::{Progress as SimulationProgress, SimulateError, simulate};
pub use evb_sources::{SourceError, SourceSpec};
pub use merging::merge;
pub use network_fit::{fit, prepare_fit};
pub use only_simulated::{OnlySimulated, check_runnable};
pub use papers::{Reproduction, Variations};
pub use shard::Shard;
pub use simulated_bench::{BenchNetwork, simulate_suite};
pub use simulations::{Begin, OpenTrace, Part, Simulations, TakeRecords};
pub use slurm::{SlurmError, SlurmJob, TaskState};
pub use stored_sweep::{FolderError, StoredSweep};
pub use surprises::{in_bytes, largest, surprises};
pub use sweep_folder::SweepFolder;
pub use traffic::run_traffic;
pub use tree_levels::{headrooms, tree_levels};
pub use until::Until;

/// Builds the events of a plan with nodes in threads of this process, until the run ends by itself or by a command of
/// the observer. `()` is an observer that does nothing. `text` is the resolved experiment, which the event files keep.
///
/// # Errors
/// [`RunError`] if the plan can only be simulated, or a node cannot open its source or its files. The record has
/// later errors.
pub fn run_in_threads(plan: &Plan, text: &str, observer: &mut dyn Observer) -> Result<Record, RunError> {
    check_runnable(std::slice::from_ref(plan))?;
    if let Some(work) = bench::Work::new(plan.clone(), bench::Wait::Sleep) {
        return traffic::in_threads(&work, observer);
    }
    match plan.stages {
        Some(_) => run_stages(plan, text, &|| Ok(Session::threads()), observer),
        None => Session::threads().run(plan, text, observer),
    }
}
