//! The experiment file: text to [`Diagnostics`] or [`Plan`]. Only this crate parses experiment files.
//!
//! The steps are: text to tree ([`Experiment::load`]), `--set` and sweep on top, defaults that follow from other keys, the
//! check against the table of keys, the rules between keys, the plan. Each section of the file has a module in `sections`
//! with all of that: its keys, the rules on them, and its part of the plan. The keys are also the
//! source of the [`reference()`] page. [`Plan::new`] makes a plan without a file.
//!
//! The meaning of a file does not depend on the machine: no environment variable, folder or file is looked at.

mod bundling;
mod check;
mod choice;
mod defaults;
mod diagnostics;
mod experiment;
#[cfg(feature = "fuzz")]
mod fuzz;
mod json_schema;
pub mod limits;
mod parse;
mod plan;
mod print;
mod reference;
mod scalar;
mod schema;
mod sections;
mod stages;
mod suggest;
mod sweep;
mod tree;
mod view;

pub use bundling::Bundling;
pub use diagnostics::{Diagnostics, Place, ProblemText};
pub use experiment::{Experiment, Other};
#[cfg(feature = "fuzz")]
pub use fuzz::fuzz_parse;
pub use json_schema::json_schema;
pub use plan::{
    BackgroundPlan, BackgroundPriority, CacheCost, Computers, Cores, CpuFit, CpuPlan, CrossingCost, DiskPlan,
    EventCost, FaultAction, FaultSpec, FieldLayout, HistogramPlan, Interruption, Keep, Load, LocalMessages,
    ManagerCost, MessageCost, Needs, NetworkPlan, NumberType, PayloadCost, PayloadLayout, PayloadPart, Placement, Plan,
    Quantity, Rejoin, RunPlan, SlotErrors, StageLink, Stages, StoragePlan, TrafficPlan, TriggerPlan, WakeCost,
    Workload,
};
pub use reference::reference;
