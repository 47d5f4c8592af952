//! The communication benchmark suite of ATLAS DAQ note 77 ("Benchmarking Communication Systems", 1997) and related
//! benchmarks, over real message layers.
//!
//! A benchmark is a machine of `evb_patterns`, which a simulation drives, too. Here each node drives one over a
//! [`MessageLayer`](evb_transport::MessageLayer) in real time, writes and verifies every byte, and accounts for every
//! message. The nodes are threads of this process, or processes that were started for one launch.

mod cell;
mod clock;
mod cores;
mod driver;
mod fleet;
mod kind;
mod line;
mod member;
mod parameters;
mod peers;
mod preset;
mod protocol;
mod rest;
mod samples;
mod series;
mod statistics;
pub mod suite;
mod summary;
mod wire;

pub use cell::{Benchmark, CONTROL_BYTES, Cell, Wait};
pub use cores::{allowed as allowed_cores, calibrate, pin};
pub use driver::{NodeResult, Setting, measure};
pub use fleet::{LOCAL, Launch};
pub use kind::LayerKind;
pub use member::{LONGEST_BYTES, MemberOptions, join};
pub use parameters::parameters;
pub use preset::{Misses, NOT_MODELLED, NetworkFit, fit_network};
pub use samples::{MOST_RAW, Sampled};
pub use series::{Measured, Observer, Series, run_series};
pub use suite::Suite;
pub use wire::SMALLEST_BYTES;

/// The version in records.
pub use evb_node::VERSION;
