//! One simulation on several cores: each has a part of the network, with some switches and the hosts on them.
//!
//! Nothing that happens in one part has an effect in another one before the lookahead has passed, which the delays of the
//! links between them give. So all parts can go on at the same time from the earliest happening in any of them, and exchange
//! mail before the lookahead is over (R. M. Fujimoto, Parallel discrete event simulation, Communications of the ACM 33, 1990:
//! conservative, synchronous). They do so in windows of half the lookahead, and take the mail of the window before the last
//! one: so none waits for the others to end the window that it has just ended itself. Each part is a machine without I/O,
//! a [`PartitionRunner`]; the threads are a [`PartitionPool`].
//!
//! The record does not depend on the number of parts. What happens in different parts at one time does not depend on each
//! other; what comes from another part has its place among what happens at that time by its own time and sender. The few
//! things that need more than one part knows, such as a run in which nothing moves any more, make the parts give up, and
//! the whole is simulated in one.

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

/// Fewest fragments, or parts of them in packets, that all hosts together send within a lookahead, for which parts are worth
/// the exchange of their mail.
const FEWEST: f64 = 4.0;

/// Packets of a message from which on it is simulated faster as a train, in one part.
const TRAIN: f64 = 4.0;

/// Simulates a plan in at most so many parts. There is no simulation if that does not pay, if the plan has no parts, or if
/// they gave up.
///
/// # Errors
/// As for a simulation in one part.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    most: NonZeroUsize,
    observe: &mut Observe<'_>,
) -> Result<Option<Simulation<'a>>, SimulateError> {
    match divide(plan, most)? {
        Some((network, partition)) if pays(plan, &network, &partition) => in_parts(plan, &network, &partition, observe),
        _ => Ok(None),
    }
}

/// The network of a plan and its parts, at most so many; none if it has no two parts.
pub(crate) fn divide(plan: &Plan, most: NonZeroUsize) -> Result<Option<(Network, Arc<Partitioning>)>, SimulateError> {
    if most.get() < 2 || !partition_border::may_part(plan) {
        return Ok(None);
    }
    let network = Network::build(&plan.network.config)?;
    let partition = Partitioning::of(plan, &network, most.get());
    Ok(partition.map(|partition| (network, Arc::new(partition))))
}

/// True if the parts have enough to do within a lookahead, and messages are not so long that trains are faster.
fn pays(plan: &Plan, network: &Network, partition: &Partitioning) -> bool {
    let (link, nic) = (&network.config.link, &network.config.nic);
    let (fragment, packet) = (mean_size(plan, 0), nic.packet.0 as f64);
    let message = match plan.building.shaping {
        Shaping::BarrelShifter { bucket, .. } => bucket.0 as f64,
        _ => fragment,
    };
    let seconds = fragment.min(packet) / link.rate.as_bytes_per_second();
    let within_lookahead = network.hosts() as f64 * partition.lookahead.as_secs_f64() / seconds;
    message / packet < TRAIN && within_lookahead >= FEWEST
}

/// Simulates the parts of a plan. There is no simulation if they gave up.
pub(crate) fn in_parts<'a>(
    plan: &'a Plan,
    network: &Network,
    partition: &Arc<Partitioning>,
    observe: &mut Observe<'_>,
) -> Result<Option<Simulation<'a>>, SimulateError> {
    let Some(runners) = runners(plan, network, partition)? else { return Ok(None) };
    let (end, parts) = PartitionPool::new(runners).run(observe);
    Ok((end != RunOutcome::GaveUp).then(|| join(parts, end, partition)))
}

/// The parts of a plan at their beginning; `None` if something is due that needs all of them at once.
fn runners<'a>(
    plan: &'a Plan,
    network: &Network,
    partition: &Arc<Partitioning>,
) -> Result<Option<Vec<PartitionRunner<'a>>>, SimulateError> {
    let part = |index| {
        let border = PartitionBorder::new(partition.clone(), index);
        Simulation::of_part(plan, network.clone(), Trace::new(None), Packets::OneByOne, border)
    };
    let first = part(0)?;
    if !first.net.is_steady() {
        return Ok(None);
    }
    let others = (1..partition.parts).map(part);
    let parts = iter::once(Ok(first)).chain(others).collect::<Result<_, _>>()?;
    Ok(Some(PartitionRunner::of_all(parts, partition.lookahead)))
}

/// The whole simulation, of parts that have ended.
fn join<'a>(parts: Vec<Simulation<'a>>, end: RunOutcome, partition: &Partitioning) -> Simulation<'a> {
    let mut parts = parts.into_iter();
    let mut first = parts.next().expect("there are two parts at least");
    let mut others: Vec<_> = parts.collect();
    if end == RunOutcome::Interrupted {
        first.interrupt();
    }
    let now = others.iter().map(Simulation::now).fold(first.now(), Time::max);
    others.iter().for_each(|part| first.statistics.hear_last(&part.statistics));
    let end = first.statistics.ends_at(now.0);
    first.end_part(end);
    others.iter_mut().for_each(|part| part.end_part(end));
    first.join(others, partition);
    first
}
