//! The worker threads of a process, and the nodes that each of them carries.

use crate::control::{Instruction, Notice};
use crate::core_binding::CoreBindings;
use crate::endpoint::longest_body;
use crate::error::NodeError;
use crate::limits;
use crate::link::NodeLink;
use crate::node::{ControlChannel, Node};
use crate::node_group::Blueprint;
use crate::roles::open_role;
use crate::run_info::RunStart;
use crate::worker::carry;
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_sources::SharedLinks;
use evb_transport::{SharesThread, ThreadOptions, UseEndpoints, doorbell::Doorbell};
use evb_unit::{WORKER_SPINS, worker_count, workers_of};
use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Number of messages that a queue to a node holds in addition to one fragment for each slot of a builder.
const CONTROL_MESSAGES: usize = 64;

/// Lets a worker without work sleep.
fn sleep<T: SharesThread>(nodes: &mut [Node<T>], doorbell: &Doorbell, timeout: Duration) {
    if T::RINGS {
        doorbell.wait(timeout, || nodes.iter().any(|node| node.link.outbox.transport.is_ready()));
    } else if let Some(node) = nodes.first_mut() {
        node.link.outbox.transport.wait(timeout);
    }
}

/// Number of messages that a queue to a node holds.
pub(crate) const fn queue_length(plan: &Plan) -> usize {
    plan.building.builder_slots as usize + CONTROL_MESSAGES
}

/// The connection to a worker: its orders, and its doorbell.
type OrderLine = (Sender<(NodeId, Instruction)>, Arc<Doorbell>);

/// The workers of a configuration. Dropping them ends them.
pub(crate) struct WorkerPool {
    /// The worker of each node.
    placement: Vec<usize>,
    /// The orders and the doorbell of each worker.
    lines: Vec<OrderLine>,
    pub(crate) notices: Receiver<(NodeId, Notice)>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    pub(crate) fn start(blueprint: &Arc<Blueprint>) -> Result<Self, NodeError> {
        let plan = &blueprint.plan;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers = worker_count(plan, cores, plan.building.nodes().into());
        let doorbells: Vec<_> = (0..workers).map(|_| Arc::new(Doorbell::new())).collect();
        let placement = workers_of(plan, doorbells.len());
        let options = ThreadOptions {
            doorbells: placement.iter().map(|&worker| doorbells[worker].clone()).collect(),
            queue: queue_length(plan),
            max_body: longest_body(plan),
        };
        evb_transport_registry::open_threads(
            &plan.transport,
            options,
            WorkerPoolBuilder { blueprint, doorbells, placement },
        )
    }

    pub(crate) fn order(&self, node: NodeId, instruction: Instruction) {
        let Some((sender, doorbell)) = self.placement.get(node.index()).map(|&worker| &self.lines[worker]) else {
            return;
        };
        // A worker that has ended has reported why.
        let _ended = sender.send((node, instruction));
        doorbell.call();
    }
}

/// A pool that is about to start, with a doorbell for each of its workers.
struct WorkerPoolBuilder<'a> {
    blueprint: &'a Arc<Blueprint>,
    doorbells: Vec<Arc<Doorbell>>,
    /// The worker of each node.
    placement: Vec<usize>,
}

impl UseEndpoints for WorkerPoolBuilder<'_> {
    type Output = WorkerPool;
    type Error = NodeError;

    fn with<T: SharesThread>(self, endpoints: Vec<T>) -> Result<WorkerPool, NodeError> {
        let Self { blueprint, doorbells, placement } = self;
        let plan = &blueprint.plan;
        let bindings = CoreBindings::of(plan)?
            .map(|bindings| (0..doorbells.len()).map(|worker| bindings.at(worker)).collect::<Vec<_>>());
        let mut hosted: Vec<Vec<_>> = doorbells.iter().map(|_| Vec::new()).collect();
        for (node, endpoint) in (0..plan.building.nodes()).map(NodeId).zip(endpoints) {
            let (worker, link) = (placement[node.index()], NodeLink::new(endpoint, plan.building.nodes()));
            hosted[worker].push(Node::new(node, link, bindings.as_ref().map(|bindings| bindings[worker].clone())));
        }
        let (sender, notices) = mpsc::channel();
        let links = SharedLinks::default();
        let mut pool = WorkerPool { placement, lines: Vec::new(), notices, threads: Vec::new() };
        for (doorbell, nodes) in doorbells.into_iter().zip(hosted) {
            let (order_sender, orders) = mpsc::channel();
            pool.lines.push((order_sender, doorbell.clone()));
            let (blueprint, notices, links) = (blueprint.clone(), sender.clone(), links.clone());
            pool.threads.push(limits::spawn(move || {
                let open = |node, run: &RunStart, endpoint: &T| {
                    open_role(&blueprint.plan, &blueprint.text, run, node, endpoint, Some(&links))
                };
                let channel = ControlChannel { orders: &orders, notices: &notices, stop: None };
                carry(nodes, channel, &open, WORKER_SPINS, |nodes, timeout| sleep(nodes, &doorbell, timeout));
            })?);
        }
        Ok(pool)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // Workers end with their orders.
        for (sender, doorbell) in self.lines.drain(..) {
            drop(sender);
            doorbell.call();
        }
        for thread in self.threads.drain(..) {
            let _has_told_of_its_panic = thread.join();
        }
    }
}
