//! The VELO hardware as a message layer: its Verilog (`velo/hardware/rtl`), simulated cycle by cycle, with a host for each
//! node.
//!
//! [`prepare`] compiles the Verilog with Verilator and a C++ compiler on first use. [`cluster`] gives each node a
//! [`RtlLayer`]; [`cluster_of`] does so for other [`Hardware`], such as a model. Two nodes are joined back to back,
//! more by one switch.
//!
//! # Scope of the simulation
//! - *The device and the network* are the hardware, edge by edge.
//! - *The bus* takes one word of posted writes in each cycle for which the device has given a credit, and the memory
//!   takes one. The other parts between a processor and the device in a real machine are left out.
//! - *The processor* is the program that uses the layer. It costs only this: each poll, and each message that finds no
//!   room, takes one cycle. So times are those of the hardware alone.
//!
//! A [`Transport`](evb_transport::Transport) over it is [`OverLayer`](evb_transport::OverLayer). A [`Service`] offers the
//! nodes to other processes instead: as cards of a rack in shared memory.

mod bus;
mod cluster;
mod error;
mod factory;
#[cfg(test)]
mod fake;
mod ffi;
mod hardware;
mod host;
mod layer;
mod library;
mod peers;
#[cfg(target_os = "linux")]
mod service;
#[cfg(test)]
mod tests;

pub use error::RtlError;
pub use hardware::{Hardware, Inputs, Outputs};
pub use layer::RtlLayer;
#[cfg(target_os = "linux")]
pub use service::{NodeReport, Service, ServiceReport};

use cluster::Cluster;
use evb_core::Span;
use evb_velo::{AddressMap, mailbox::Ring};
use library::Shape;
use std::{ops::RangeInclusive, sync::Arc, time::Duration};

/// One cycle: the clock has 100 MHz, as in the prototype of VELO 2008 (section 4).
pub const CYCLE: Span = Span(10_000);

/// Possible numbers of nodes: the switch has 16 ports.
pub const NODES: RangeInclusive<usize> = 2..=16;

/// Possible numbers of wires of a link in one direction: a frame of 96 bits takes 6, 3 or 1 cycles.
pub const LINKS: [u32; 3] = [PROTOTYPE_LINK, 32, 96];
/// Wires of a link of the prototype.
const PROTOTYPE_LINK: u32 = 16;

/// Bits of the addresses of the modules (their parameters N and T).
const ADDRESS_BITS: (u32, u32) = (28, 20);

/// The way in which nodes share the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each node is a thread, and a cycle passes when all of them have used it up: a run is the same each time. A node
    /// that does not continue breaks the cluster: all nodes are lost to each other then.
    Lockstep,
    /// Each poll of any node is a cycle for all. For nodes that share a thread, or do other things meanwhile.
    Free,
}

/// Options of all nodes of a cluster.
#[derive(Clone, Debug)]
pub struct RtlOptions {
    /// Wires of a link in one direction, one of [`LINKS`].
    pub link: u32,
    /// Pages of a mailbox, a power of two up to 128; each has 32 slots.
    pub pages: u64,
    /// Words that may wait for the bus before a message finds no room.
    pub queue_words: usize,
    /// Longest message in bytes.
    pub max_bytes: usize,
    /// The way in which nodes share the clock.
    pub pace: Pace,
    /// Longest real time for which the clock of nodes in lockstep may stand while one of them waits.
    pub patience: Duration,
}

impl Default for RtlOptions {
    /// The prototype's link, and four write-combining buffers, each a command and a cache line.
    fn default() -> Self {
        Self {
            link: PROTOTYPE_LINK,
            pages: 4,
            queue_words: 4 * 9,
            max_bytes: 1 << 20,
            pace: Pace::Lockstep,
            patience: Duration::from_secs(60),
        }
    }
}

impl RtlOptions {
    fn map() -> AddressMap {
        AddressMap::new(ADDRESS_BITS.0, ADDRESS_BITS.1).expect("the bits follow each other")
    }
}

/// Compiles the library for a cluster of `nodes` nodes, if that is not done yet. `notice` is called when the
/// compilation begins, since it takes some seconds.
///
/// # Errors
/// [`RtlError`]: there is no such cluster, or the Verilog cannot be compiled here.
pub fn prepare(nodes: usize, options: &RtlOptions, notice: &mut dyn FnMut(&str)) -> Result<(), RtlError> {
    check(nodes, options)?;
    library::library(Shape::of(nodes, options.link), notice).map(drop)
}

/// A cluster of the hardware: the layers of all nodes, in order. It is [prepared](prepare) if that was not done before.
///
/// # Errors
/// Those of [`prepare`].
pub fn cluster(nodes: usize, options: &RtlOptions) -> Result<Vec<RtlLayer>, RtlError> {
    cluster_of(verilated(nodes, options)?, nodes, options)
}

/// The simulated hardware after a reset.
fn verilated(nodes: usize, options: &RtlOptions) -> Result<Box<dyn Hardware>, RtlError> {
    check(nodes, options)?;
    let library = library::library(Shape::of(nodes, options.link), &mut |_| ())?;
    Ok(Box::new(ffi::Verilated::open(&library, nodes)?))
}

/// A cluster of other hardware after a reset: the layers of all nodes, in order.
///
/// # Errors
/// Those of [`cluster`].
pub fn cluster_of(hardware: Box<dyn Hardware>, nodes: usize, options: &RtlOptions) -> Result<Vec<RtlLayer>, RtlError> {
    check(nodes, options)?;
    let cluster = Arc::new(Cluster::new(hardware, nodes, options));
    Ok((0..nodes).map(|node| RtlLayer::new(Arc::clone(&cluster), node, options)).collect())
}

fn check(nodes: usize, options: &RtlOptions) -> Result<(), RtlError> {
    if !NODES.contains(&nodes) {
        return Err(RtlError::Nodes { nodes });
    }
    if !LINKS.contains(&options.link) {
        return Err(RtlError::Link { link: options.link });
    }
    Ring::new(0, options.pages)?;
    Ok(())
}
