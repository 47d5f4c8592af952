//! The experiment file: text to diagnostics to [`Plan`]. Only this crate parses experiment files.

mod plan;

pub use plan::{FaultAction, FaultSpec, Keep, Plan, RunPlan, StoragePlan, TransportKind, TriggerPlan};
