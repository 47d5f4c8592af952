//! The processes of an event builder: a plan, run for real.
//!
//! Each node is a unit of the event builder with a transport endpoint and its resources: a source of fragments, an
//! event file or a clock. A worker thread carries one or more nodes. Run control starts and stops them, watches them
//! and makes the record. It uses the same orders and notices for workers in threads and for processes.

mod builder;
mod children;
mod control;
mod control_lane;

mod core_binding;
mod endpoint;
mod error;
mod filter;
mod fragment_ref;
mod heap;
mod idle_ladder;
mod join;
mod join_options;
pub mod limits;
pub mod lines;
mod link;
mod machine;
mod manager;
mod memory;
mod node;
mod node_group;
mod observer;
mod outbox;
mod outcome;
mod placement;
mod pool;
mod processes;
mod processors;
mod ranks;
mod readout;
mod roles;
mod run_info;
mod run_number;
mod sample;
mod session;
mod stages;
mod storage;
mod threads;
mod wire_control;
mod worker;
mod worker_pool;

pub use children::Children;
pub use error::{NodeError, RunError};
pub use evb_control::{Command, RunState};
pub use evb_transport::Token;
pub use evb_unit::{BufferFill, Distribution, Live, OpenCounts, Progress, Sizes, VERSION};
pub use idle_ladder::{IdleAction, IdleLadder};
pub use join::join;
pub use join_options::JoinOptions;
pub use machine::{NodeMachine, host};
pub use memory::{MemoryBound, NodeMemory};
pub use observer::Observer;
pub use processes::{ProcessOptions, Start};
pub use ranks::{Ranks, launched};
pub use run_number::is_run_number;
pub use sample::{Sample, SampleFragment};
pub use session::{NodePresence, Session, Turn};
pub use stages::{OpenSession, run_stages};
