//! The cores of workers: where `run.placement` binds them.
//!
//! A node is not bound while it opens its sources and files: the threads that it starts then would inherit its core.

use crate::{error::NodeError, placement};
use evb_core::NodeId;
use evb_experiment::{Cores, Plan};
use evb_os::cores;
use evb_unit::place_of;
use rustix::io;
use std::sync::Arc;

/// The cores of this machine for the workers of a plan that binds them.
pub(crate) struct CoreBindings {
    /// The cores that the workers may use when they are not bound.
    all: Vec<u16>,
    /// The same, in the order in which nodes take them.
    order: Vec<u16>,
}

impl CoreBindings {
    /// The cores for a plan; `None` if it leaves the placement to the system.
    ///
    /// # Errors
    /// The system does not report the cores.
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>, NodeError> {
        if plan.run.cores == Cores::None {
            return Ok(None);
        }
        let all = cores::usable().map_err(|error| refused("the system does not report the cores of a node", error))?;
        let order = placement::in_order(all.iter().map(|&core| cores::look_up(core)).collect());
        Ok(Some(Self { all, order }))
    }

    /// The binding of a node in a separate process; `None` if the node is not bound. `here` are the nodes of this machine.
    pub(crate) fn of_node(&self, plan: &Plan, node: NodeId, here: &[NodeId]) -> Option<Arc<CoreBinding>> {
        place_of(&plan.building, node, here, self.order.len()).map(|index| self.at(index))
    }

    /// The binding with this index. Indices beyond the last core begin again at the first.
    pub(crate) fn at(&self, index: usize) -> Arc<CoreBinding> {
        Arc::new(CoreBinding { core: self.order[index % self.order.len()], all: self.all.clone() })
    }
}

/// The core to which a worker is bound; its nodes share this. When the last one drops it, that thread may use all cores
/// again.
#[derive(Debug)]
pub(crate) struct CoreBinding {
    core: u16,
    /// The cores that the thread may use when it is not bound.
    all: Vec<u16>,
}

impl CoreBinding {
    pub(crate) const fn core(&self) -> u16 {
        self.core
    }

    /// Does work that may start other threads, and then binds this thread, even if the work failed: its other nodes may
    /// continue. The other threads are not bound, so that they do not compete with this one for its core.
    pub(crate) fn bind_after<R>(
        binding: Option<&Self>,
        work: impl FnOnce() -> Result<R, NodeError>,
    ) -> Result<R, NodeError> {
        let Some(Self { core, all }) = binding else { return work() };
        let failed = |error| refused(&format!("cannot bind a node to core {core}"), error);
        cores::bind(all).map_err(failed)?;
        let result = work();
        cores::pin(*core).map_err(failed)?;
        result
    }
}

impl Drop for CoreBinding {
    fn drop(&mut self) {
        // The cores were allowed before. If some have disappeared, the thread stays where it is.
        let _still_bound = cores::bind(&self.all);
    }
}

fn refused(what: &str, error: io::Errno) -> NodeError {
    NodeError::new(format!("{what}: {error}")).hint("`--set run.placement=none` leaves it to the system")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_os::cores::allowed;

    #[test]
    fn a_thread_is_bound_until_the_last_node_leaves_its_seat() {
        let before = allowed();
        let binding = Arc::new(CoreBinding { core: before[before.len() - 1], all: before.clone() });
        let other = binding.clone();
        let inside = CoreBinding::bind_after(Some(&binding), || Ok(allowed())).unwrap();
        assert_eq!((inside, allowed()), (before.clone(), vec![binding.core()]));
        drop(other);
        assert_eq!(allowed(), [binding.core()]);
        drop(binding);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_thread_is_bound_again_after_work_that_failed() {
        let before = allowed();
        let binding = CoreBinding { core: before[0], all: before };
        CoreBinding::bind_after::<()>(Some(&binding), || Err(NodeError::new("no file"))).unwrap_err();
        assert_eq!(allowed(), [binding.core()]);
    }

    #[test]
    fn an_absent_core_is_an_error_with_a_hint() {
        let absent = CoreBinding { core: 1023, all: allowed() };
        let refused = CoreBinding::bind_after(Some(&absent), || Ok(())).unwrap_err();
        assert!(refused.message.contains("cannot bind a node to core 1023"), "{refused}");
        assert!(refused.hint.is_some_and(|hint| hint.contains("run.placement=none")));
    }

    #[test]
    fn indices_beyond_the_last_core_begin_again() {
        let bindings = CoreBindings { all: vec![0, 1], order: vec![1, 0] };
        assert_eq!([0, 1, 2].map(|index| bindings.at(index).core()), [1, 0, 1]);
    }
}
