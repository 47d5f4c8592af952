//! The experiment file: text to [`Diagnostics`] or [`Plan`]. Only this crate parses experiment files.
//!
//! The way is: text to tree ([`Experiment::load`]), `--set` and sweep on top, defaults that follow from other keys, the
//! check against the table of keys, the rules between keys, the plan. The table of keys is also the source of the
//! [`reference()`] page.
//!
//! What a file means does not depend on the machine: no environment variable, folder or file is looked at.

mod anchor;
mod build;
mod check;
mod derive;
mod diagnostics;
mod experiment;
#[cfg(feature = "fuzz")]
mod fuzz;
mod keys;
pub mod limits;
mod parse;
mod plan;
mod preset;
mod print;
mod reference;
mod rules;
mod scalar;
mod schema;
mod suggest;
mod sweep;
mod tree;
mod view;

pub use diagnostics::Diagnostics;
pub use experiment::{Experiment, Other};
#[cfg(feature = "fuzz")]
pub use fuzz::fuzz_parse;
pub use plan::{
    FaultAction, FaultSpec, Keep, Load, NetworkPlan, Placement, Plan, RunPlan, StoragePlan, TrafficPlan, TriggerPlan,
    Workload,
};
pub use reference::reference;
