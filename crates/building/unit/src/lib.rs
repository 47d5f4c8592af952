//! The units of an event builder, between a protocol machine and its driver, for every driver.
//!
//! A unit is a machine with its surroundings behind small traits: a source of fragments, a storage, the times of
//! triggers. It answers the requests of the machine, and counts. The driver adds time, bytes and threads. The simulator
//! has units whose fragments carry no payload ([`SimulatedPayload`]); the processes have units with real bytes.
//!
//! The reports of all units make an [`Account`], and this makes the record.

mod account;
mod arrivals;
mod blocks;
mod builder;
pub mod bundle;
mod distribution;
mod filling;
mod injector;
mod latency;
mod links;
mod live;
mod manager;
mod meter;
mod monitor;
mod occupancy;
mod payload;
mod places;
mod readout;
mod record;
mod report;
mod selector;
pub mod shaping;
mod sources;
mod split;
mod super_fragment_sender;
mod workers;

pub use account::{Account, Progress};
pub use arrivals::Arrivals;
pub use builder::{BuilderUnit, Store};
pub use distribution::{Distribution, Sizes};
pub use injector::Injector;
pub use latency::Latencies;
pub use live::Live;
pub use manager::EventManager;
pub use payload::{Payload, SimulatedBundle, SimulatedPayload};
pub use places::Places;
pub use readout::{FragmentSource, ReadLimits, ReadoutUnit, WorkDone, open_options};
pub use record::Offered;
pub use report::{
    BufferFill, BuilderReport, DeadLink, DriverReport, Faults, ManagerReport, OpenCounts, ReadoutReport, Report,
    SourceIdentity,
};
pub use selector::Selector;
pub use sources::Sources;
pub use super_fragment_sender::SuperFragmentSender;
pub use workers::{TURN_MESSAGES, WORKER_SPINS, WORKER_YIELDS, WRITE_BATCH_BYTES, place_of, worker_count, workers_of};

/// The version that records and event files carry.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
