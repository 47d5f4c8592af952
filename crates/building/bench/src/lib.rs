//! The communication benchmark suite of ATLAS DAQ note 77 ("Benchmarking Communication Systems", 1997) and related
//! benchmarks, over real message layers.
//!
//! A benchmark is a machine of `evb_patterns`, which a simulation drives, too. Here each node drives one over a
//! [`MessageLayer`](evb_transport::MessageLayer) in real time, writes and verifies every byte, and accounts for every
//! message. The nodes are threads of this process, or processes that were started for one launch.

mod benchmark;
mod clock;
mod cores;
mod counters;
mod driver;
mod error;
mod fabric;
mod idle_policy;
mod launch;
mod line;
mod measurement;
mod member;
mod offers;
mod parameters;
mod peers;
mod preset;
mod protocol;
mod renumbered;
mod samples;
mod series;
mod statistics;
pub mod suite;
mod summary;
mod times;
mod wire;
mod work;

pub use benchmark::Benchmark;
pub use cores::{allowed as allowed_cores, calibrate, pin};
pub use driver::{NodeResult, RECEIVED, RECEIVED_BYTES, SENT_BYTES, Setting, measure};
pub use error::{BenchError, NodeFailure};
pub use evb_transport_registry::LayerChoice;
pub use fabric::{FabricTest, SLOWER, interface_losses};
pub use idle_policy::Wait;
pub use launch::{LOCAL, Launch, NodeLauncher, START_TIMEOUT};
pub use measurement::Measurement;
pub use member::{MemberOptions, join};
pub use parameters::parameters;
pub use preset::{FitError, FitErrors, NOT_MODELLED, NetworkFit, fit_network};
pub use samples::{MOST_RAW, SampleSummary};
pub use series::{Measured, Observer, Series, run_series};
pub use statistics::times;
pub use suite::Suite;
pub use wire::{CONTROL_BYTES, LONGEST_BYTES, SMALLEST_BYTES, SMALLEST_STAMPED};
pub use work::Work;
