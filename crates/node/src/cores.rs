//! The cores of this machine, and the binding of threads to them.

use crate::control::NodeError;
use evb_core::NodeId;
use evb_experiment::{Cores, Plan};
use evb_protocol::Config;
use rustix::{
    io,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use std::fs;

/// The cores that this thread may use, in ascending order.
#[must_use]
pub fn allowed() -> Vec<u16> {
    sched_getaffinity(None).map(|set| members(&set)).unwrap_or_default()
}

/// Binds this thread to one core, and checks it with the system. Threads that it starts are bound, too.
///
/// # Errors
/// If the system refuses it, or reports another core afterwards.
pub fn pin(core: u16) -> io::Result<()> {
    bind(&[core])
}

fn bind(cores: &[u16]) -> io::Result<()> {
    let mut wanted = CpuSet::new();
    cores.iter().for_each(|&core| wanted.set(core.into()));
    sched_setaffinity(None, &wanted)?;
    match allowed() == cores {
        true => Ok(()),
        false => Err(io::Errno::INVAL),
    }
}

fn members(set: &CpuSet) -> Vec<u16> {
    (0..CpuSet::MAX_CPU as u16).filter(|&core| set.is_set(core.into())).collect()
}

/// The cores in the order in which nodes take them: the first hardware thread of each, then the others.
fn in_order(cores: &[u16]) -> Vec<u16> {
    let (first, others): (Vec<_>, Vec<_>) = cores.iter().partition(|&&core| {
        let siblings = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"));
        siblings.map_or(true, |siblings| is_first(core, &siblings))
    });
    [first, others].concat()
}

/// True if a core is the first in a list of the kernel, such as `0,4` or `0-1`.
fn is_first(core: u16, siblings: &str) -> bool {
    let first = siblings.split(|character: char| !character.is_ascii_digit()).next();
    first.and_then(|first| first.parse().ok()).is_none_or(|first: u16| first == core)
}

/// The core of a node; none if the node is not bound. All readout units talk to all builder units, so each core gets its
/// share of both, and that share of the fragments stays on its core. The event manager has little to do and talks to all:
/// the system finds the best place for it.
fn core_of(config: &Config, node: NodeId, cores: &[u16]) -> Option<u16> {
    if usize::from(config.nodes()) <= cores.len() {
        return cores.get(node.index()).copied();
    }
    let units = [config.readout_nodes(), config.builder_nodes()];
    let unit = units.into_iter().find(|units| units.contains(node)).map(|units| node.0 - units.first.0)?;
    cores.get(usize::from(unit) % cores.len().max(1)).copied()
}

/// The core to which the thread of a node is bound. When this is dropped, that thread may use all cores again.
#[derive(Debug)]
pub(crate) struct Seat {
    core: u16,
    /// The cores that the thread may use when it is not bound.
    all: Vec<u16>,
}

impl Seat {
    /// The seat of a node in a process of its own; none if the node is not bound.
    pub(crate) fn of_node(plan: &Plan, node: NodeId) -> Option<Self> {
        Self::find(plan, |cores| core_of(&plan.building, node, cores))
    }

    /// The seat of one of the workers that carry the nodes in one process; none if they are not bound.
    pub(crate) fn of_worker(plan: &Plan, worker: usize) -> Option<Self> {
        Self::find(plan, |cores| cores.get(worker % cores.len().max(1)).copied())
    }

    fn find(plan: &Plan, choose: impl FnOnce(&[u16]) -> Option<u16>) -> Option<Self> {
        let all = (plan.run.cores == Cores::Auto).then(allowed)?;
        Some(Self { core: choose(&in_order(&all))?, all })
    }

    pub(crate) const fn core(&self) -> u16 {
        self.core
    }

    /// Does work that may start other threads, which are not bound: they would compete with this one for its core. Then
    /// binds this thread.
    pub(crate) fn after<R>(seat: Option<&Self>, work: impl FnOnce() -> Result<R, NodeError>) -> Result<R, NodeError> {
        let Some(Self { core, all }) = seat else { return work() };
        let refused = |error| {
            NodeError::new(format!("cannot bind a node to core {core}: {error}"))
                .hint("`--set run.placement=none` leaves it to the system")
        };
        bind(all).map_err(refused)?;
        let result = work()?;
        bind(&[*core]).map_err(refused)?;
        Ok(result)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The cores were allowed before. If some are no more, the thread stays where it is.
        let _stays = bind(&self.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores_of(readouts: u16, builders: u16, cores: &[u16]) -> Vec<Option<u16>> {
        let config = Config::new(readouts, builders);
        (0..config.nodes()).map(|node| core_of(&config, NodeId(node), cores)).collect()
    }

    #[test]
    fn every_node_has_a_core_of_its_own_where_there_are_enough() {
        assert_eq!(cores_of(2, 2, &[0, 1, 2, 3, 8]), [0, 1, 2, 3, 8].map(Some));
    }

    #[test]
    fn units_with_the_same_number_share_a_core_where_there_are_few() {
        assert_eq!(cores_of(2, 2, &[3, 7]), [None, Some(3), Some(7), Some(3), Some(7)]);
        assert_eq!(cores_of(3, 1, &[0, 1]), [None, Some(0), Some(1), Some(0), Some(0)]);
        assert_eq!(cores_of(1, 1, &[5]), [None, Some(5), Some(5)]);
    }

    #[test]
    fn the_first_of_two_hardware_threads_is_known() {
        for (core, siblings, expected) in
            [(0, "0,4\n", true), (4, "0,4\n", false), (1, "0-1\n", false), (3, "3\n", true)]
        {
            assert_eq!(is_first(core, siblings), expected, "core {core} of {siblings}");
        }
        assert!(is_first(2, ""), "unknown");
    }

    #[test]
    fn a_thread_is_bound_until_its_seat_is_dropped() {
        let before = allowed();
        let seat = Seat { core: before[before.len() - 1], all: before.clone() };
        let inside = Seat::after(Some(&seat), || Ok(allowed())).unwrap();
        assert_eq!((inside, allowed()), (before.clone(), vec![seat.core()]));
        drop(seat);
        assert_eq!(allowed(), before);
        let absent = Seat { core: 1023, all: before.clone() };
        let refused = Seat::after(Some(&absent), || Ok(())).unwrap_err();
        assert!(refused.to_string().contains("cannot bind a node to core 1023"), "{refused}");
    }
}
