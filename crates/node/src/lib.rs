//! The processes of an event builder: a plan, run for real.
//!
//! Each node is a unit of the event builder, a transport endpoint and what it needs of the world: a source of fragments,
//! an event file, a clock. A worker thread carries one or more nodes. Run control starts and stops them, watches them and
//! makes the record; it speaks to workers in threads and to processes by the same orders and notices.

mod builder;
mod children;
mod control;
mod endpoint;
mod join;
pub mod limits;
pub mod lines;
mod link;
mod manager;
mod memory;
mod pool;
mod processes;
mod ranks;
mod readout;
mod roles;
mod run_control;
mod run_number;
mod storage;
mod threads;
mod wire_control;
mod worker;

pub use children::Children;
pub use control::NodeError;
pub use evb_transport::Token;
pub use evb_unit::{Progress, VERSION};
pub use join::{JoinOptions, join};
pub use memory::{MemoryBound, NodeMemory};
pub use processes::{ProcessOptions, Start, run_processes};
pub use ranks::{Ranks, launched};
pub use run_control::{Observer, RunError};
pub use threads::run_threads;

use evb_experiment::Plan;

/// A checksum of what all nodes of a run must have in common: the plan, but for where files lie on each machine.
fn fingerprint(plan: &Plan) -> u32 {
    let mut common = plan.clone();
    (common.data_directory, common.storage.directory) = Default::default();
    evb_core::checksum(&serde_json::to_vec(&common).expect("a plan has a JSON form"))
}
