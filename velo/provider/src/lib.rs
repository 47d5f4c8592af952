//! VELO as a provider of libfabric: reliable datagram endpoints with messages, tagged messages and remote memory.
//!
//! libfabric loads this library from the folder in `FI_PROVIDER_PATH`, and finds `fi_prov_ini` in it. Crate `evb-libfabric-abi` declares its structures.
//!
//! Messages go over shared memory. If `FI_VELO_HARDWARE` has the name of hardware that program `evb-velo-hardware` simulates, they go
//! through that: see `lane`.
//!
//! | module | part |
//! |---|---|
//! | `info` | what the provider offers, and whether it suits |
//! | `lane` | the way of messages: shared memory, or simulated hardware |
//! | `queue` | completion queues and counters |
//! | `engine` | one endpoint: matching of messages and receives |
//! | `domain` | everything behind one lock |
//! | `objects` | fabric, domain, address vector, queues, counters, memory |
//! | `endpoint` | the calls of an endpoint |

#![cfg(target_os = "linux")]

mod domain;
mod endpoint;
mod engine;
mod info;
mod lane;
mod objects;
mod queue;
