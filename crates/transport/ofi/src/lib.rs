//! The transport and the message layer over libfabric (OFI): `tcp` between machines, `shm` within one, and the networks
//! of clusters by their own providers.
//!
//! The library is opened at run time as `libfabric.so.1`, or by the name in the environment variable `EVB_LIBFABRIC`;
//! this crate builds without it. [`Ofi`] is the transport of the event builder, [`OfiLayer`] the layer of the
//! benchmarks, and [`providers`] lists the available providers. `docs/reference/ofi.md` describes the messages, and
//! known properties of the library.

mod control;
mod error;
mod factory;
mod ffi;
mod frame;
mod layer;
mod links;
mod options;
mod outbox;
mod peer;
mod rooms;
mod tags;
mod transport;

pub use error::OfiError;
pub use ffi::providers;
pub use layer::OfiLayer;
pub use options::OfiOptions;
pub use transport::Ofi;
