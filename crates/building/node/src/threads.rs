//! Nodes in one process. Worker threads carry them; messages go by reference, or through simulated hardware.

use crate::control::{Detail, Instruction, Notice, Order};
use crate::error::NodeError;
use crate::limits;
use crate::node_group::{Blueprint, NodeGroup};
use crate::observer::Observer;
use crate::roles::check_paths;
use crate::run_info::RunInfo;
use crate::worker_pool::WorkerPool;
use evb_core::NodeId;
use evb_experiment::Plan;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// Longest wait for all nodes to join. Threads join at once, but simulated hardware may have to be built before.
const PATIENCE: Duration = Duration::from_secs(600);
/// The nodes of a session in threads.
#[derive(Default)]
pub(crate) struct ThreadNodes {
    blueprint: Option<Arc<Blueprint>>,
    pool: Option<WorkerPool>,
    /// Notices that come from no thread.
    notices: VecDeque<(NodeId, Notice)>,
}

impl NodeGroup for ThreadNodes {
    fn gather(
        &mut self,
        blueprint: &Arc<Blueprint>,
        absent: &[NodeId],
        observer: &mut dyn Observer,
    ) -> Result<(), NodeError> {
        limits::check_for_threads(&blueprint.plan)?;
        let (transport, nodes) = (&blueprint.plan.transport, blueprint.plan.building.nodes());
        (transport.info().prepare)(nodes, transport.settings(), &mut |text| observer.note(text))?;
        let Blueprint { mut plan, text } = Blueprint::clone(blueprint);
        plan.building.share_caches();
        self.blueprint = Some(Arc::new(Blueprint { plan, text }));
        self.notices.extend(absent.iter().map(|&node| (node, Notice::Joined)));
        Ok(())
    }

    fn ask(&mut self, blueprint: &Blueprint, question: u64) -> BTreeSet<String> {
        // All of them see the same files: the event manager answers for them.
        let (plan, first) = (&blueprint.plan, NodeId(0));
        let against = (0..plan.building.nodes())
            .map(NodeId)
            .find_map(|node| check_paths(plan, node).err().map(|error| error.of(&plan.building.node_name(node))));
        self.notices.push_back((first, Notice::Checked { question, against }));
        BTreeSet::from([plan.building.node_name(first)])
    }

    fn order(&mut self, node: NodeId, order: Order, run: Option<&RunInfo>) -> Result<(), NodeError> {
        match order {
            Order::Open => {
                if let Some(Err(error)) = self.blueprint.as_ref().map(|it| check_paths(&it.plan, node)) {
                    self.notices.push_back((node, Notice::Failed(error)));
                    return Ok(());
                }
                if let (None, Some(blueprint)) = (&self.pool, &self.blueprint) {
                    self.pool = Some(WorkerPool::start(blueprint)?);
                }
                self.notices.push_back((node, Notice::Opened { address: String::new() }));
            }
            // Queues join all of them from the beginning.
            Order::Connect => self.notices.push_back((node, Notice::Ready)),
            Order::Reset => {
                self.pool = None;
                self.notices.push_back((node, Notice::Reset));
            }
            Order::Exit => self.pool = None,
            order => {
                let detail = run.map_or(Detail::None, |run| Detail::Run(run.clone()));
                if let Some(pool) = &self.pool {
                    pool.order(node, Instruction { order, detail });
                }
            }
        }
        Ok(())
    }

    fn notice(&mut self, wait: Duration, _: &mut dyn Observer) -> Result<Option<(NodeId, Notice)>, NodeError> {
        if let Some(notice) = self.notices.pop_front() {
            return Ok(Some(notice));
        }
        let notice = self.pool.as_ref().and_then(|pool| match pool.notices.recv_timeout(wait) {
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            notice => Some(notice.ok()),
        });
        // Without workers nothing comes.
        Ok(notice.unwrap_or_else(|| {
            thread::sleep(wait);
            None
        }))
    }

    fn fate(&mut self, _node: NodeId) -> Option<String> {
        None
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn transport(&self, plan: &Plan) -> &'static str {
        plan.transport.info().name
    }
}
