//! One simulation on several cores: each has a partition of the network, with some switches and the hosts on them.
//!
//! Nothing that happens in one partition has an effect in another one before the lookahead has passed, which follows
//! from the delays of the links between them. So all partitions can advance at the same time from the earliest event in
//! any of them, and exchange mail before the lookahead is over (R. M. Fujimoto, Parallel discrete event simulation,
//! Communications of the ACM 33, 1990: conservative, synchronous). They do so in windows of half the lookahead, and
//! take the mail of the window before the last one: so none waits for the others to end the window that it has just
//! ended itself. Each partition is a machine without I/O, a [`PartitionRunner`]; the threads are a [`PartitionPool`].
//!
//! The record does not depend on the number of partitions. What happens in different partitions at one time does not
//! depend on each other; what comes from another partition has its place among what happens at that time by its own
//! time and sender. The few things that need more than one partition knows, such as a run in which nothing moves any
//! more, make the partitions give up, and the whole is simulated in one.

mod pool;
mod runner;
#[cfg(test)]
mod tests;

use crate::{
    Packets, SimulateError,
    arrivals::mean_size,
    partition_border::{self, PartitionBorder, Partitioning},
    simulation::{Observe, Simulation},
    trace::Trace,
};
use evb_core::Time;
use evb_experiment::Plan;
use evb_fabric::Network;
use evb_protocol::Shaping;
use pool::PartitionPool;
use runner::{PartitionRunner, RunOutcome};
use std::{iter, num::NonZeroUsize, sync::Arc};

/// Fewest fragments, or packets of them, that all hosts together send within a lookahead, for which partitions are worth
/// the exchange of their mail.
const FEWEST: f64 = 4.0;

/// Packets of a message from which on it is simulated faster as a train, in one partition.
pub(crate) const TRAIN: f64 = 4.0;

/// Simulates a plan in at most `most` partitions. Returns `None` if that does not pay, if the plan has no partitions, or if
/// they gave up.
///
/// # Errors
/// As for a simulation in one partition.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    most: NonZeroUsize,
    observe: &mut Observe<'_>,
) -> Result<Option<Simulation<'a>>, SimulateError> {
    match divide(plan, most)? {
        Some((network, partitioning)) if pays(plan, &network, &partitioning) => {
            in_partitions(plan, &network, &partitioning, observe)
        }
        _ => Ok(None),
    }
}

/// The network of a plan and its partitions, at most `most`; `None` if it does not have two.
pub(crate) fn divide(plan: &Plan, most: NonZeroUsize) -> Result<Option<(Network, Arc<Partitioning>)>, SimulateError> {
    if most.get() < 2 || !partition_border::may_be_partitioned(plan) {
        return Ok(None);
    }
    let network = Network::build(&plan.network.config)?;
    let partitioning = Partitioning::of(plan, &network, most.get());
    Ok(partitioning.map(|partitioning| (network, Arc::new(partitioning))))
}

/// True if the partitions have enough to do within a lookahead, and messages are not so long that trains are faster.
fn pays(plan: &Plan, network: &Network, partitioning: &Partitioning) -> bool {
    let (link, nic) = (&network.config.link, &network.config.nic);
    let (fragment, packet) = (mean_fragment(plan), nic.packet.0 as f64);
    let seconds = fragment.min(packet) / link.rate.as_bytes_per_second();
    let within_lookahead = network.hosts() as f64 * partitioning.lookahead.as_secs_f64() / seconds;
    packets_of_message(plan) < TRAIN && within_lookahead >= FEWEST
}

/// Mean number of packets of a message.
pub(crate) fn packets_of_message(plan: &Plan) -> f64 {
    let message = match plan.building.shaping {
        Shaping::BarrelShifter { bucket, .. } => bucket.0 as f64,
        _ => mean_fragment(plan),
    };
    message / plan.network.config.nic.packet.0 as f64
}

/// The mean size of fragments of the first source, in bytes; 1 in a second stage, whose fragments are events of the first.
fn mean_fragment(plan: &Plan) -> f64 {
    let first = plan.bundling.bounds.first().copied().unwrap_or(0);
    if plan.sources.is_empty() { 1.0 } else { mean_size(plan, first) }
}

/// Simulates the partitions of a plan. Returns `None` if they gave up.
pub(crate) fn in_partitions<'a>(
    plan: &'a Plan,
    network: &Network,
    partitioning: &Arc<Partitioning>,
    observe: &mut Observe<'_>,
) -> Result<Option<Simulation<'a>>, SimulateError> {
    let Some(runners) = runners(plan, network, partitioning)? else { return Ok(None) };
    let (end, partitions) = PartitionPool::new(runners).run(observe);
    Ok((end != RunOutcome::GaveUp).then(|| join(partitions, end, partitioning)))
}

/// The partitions of a plan at their beginning; `None` if something is due that needs all of them at once.
fn runners<'a>(
    plan: &'a Plan,
    network: &Network,
    partitioning: &Arc<Partitioning>,
) -> Result<Option<Vec<PartitionRunner<'a>>>, SimulateError> {
    let partition = |index| {
        let border = PartitionBorder::new(partitioning.clone(), index);
        Simulation::of_partition(plan, network.clone(), Trace::new(None), Packets::OneByOne, border)
    };
    let first = partition(0)?;
    if !first.net.is_steady() {
        return Ok(None);
    }
    let others = (1..partitioning.partitions).map(partition);
    let partitions = iter::once(Ok(first)).chain(others).collect::<Result<_, _>>()?;
    Ok(Some(PartitionRunner::of_all(partitions, partitioning.lookahead)))
}

/// The whole simulation, of partitions that have ended.
fn join<'a>(partitions: Vec<Simulation<'a>>, end: RunOutcome, partitioning: &Partitioning) -> Simulation<'a> {
    let mut partitions = partitions.into_iter();
    let mut first = partitions.next().expect("there are two partitions at least");
    let mut others: Vec<_> = partitions.collect();
    if end == RunOutcome::Interrupted {
        first.interrupt();
    }
    let now = others.iter().map(Simulation::now).fold(first.now(), Time::max);
    others.iter().for_each(|partition| first.statistics.hear_last(&partition.statistics));
    let end = first.statistics.ends_at(now.0);
    first.end_partition(end);
    others.iter_mut().for_each(|partition| partition.end_partition(end));
    first.join(others, partitioning);
    first
}
