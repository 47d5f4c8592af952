//! A run in one process: worker threads carry the nodes, messages go by reference, or through simulated hardware.

use crate::control::{NodeError, Order};
use crate::endpoint::longest_body;
use crate::limits;
use crate::link::Link;
use crate::roles::open_role;
use crate::run_control::{Nodes, Observer, RunControl, RunError};
use crate::run_number::run_number;
use crate::worker::{Desk, Node, carry};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_record::Record;
use evb_transport::{SharesThread, ThreadOptions, Transport, UseEndpoints, doorbell::Doorbell};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// Polls without work before a worker yields: some 20 microseconds.
const SPINS: u32 = 200;
/// Messages that a queue between two nodes holds beside one fragment for each slot of a builder.
const CONTROL_MESSAGES: usize = 64;

/// Builds events in threads of this process.
///
/// # Errors
/// [`RunError`] when a source or a file cannot be opened, or there is no such hardware to simulate. What goes wrong later is
/// told by the record.
pub fn run_threads(plan: &Plan, text: &str, observer: &mut dyn Observer) -> Result<Record, RunError> {
    limits::check_for_threads(plan)?;
    let (transport, nodes) = (&plan.transport, plan.building.nodes());
    (transport.about().prepare)(nodes, transport.settings(), &mut |text| observer.note(text))
        .map_err(NodeError::from)?;
    let workers: Vec<_> = (0..worker_count(plan)).map(|_| Arc::new(Doorbell::new())).collect();
    let bell_of = |node| workers[worker_of(plan, NodeId(node), workers.len())].clone();
    let options = ThreadOptions {
        doorbells: (0..nodes).map(bell_of).collect(),
        queue: queue_length(plan),
        max_body: longest_body(plan),
    };
    evb_transports::open_threads(transport, options, Hosting { plan, text, workers: &workers, observer })
}

/// What workers need to carry the nodes, beside their endpoints.
struct Hosting<'a> {
    plan: &'a Plan,
    text: &'a str,
    workers: &'a [Arc<Doorbell>],
    observer: &'a mut dyn Observer,
}

impl UseEndpoints for Hosting<'_> {
    type Output = Record;
    type Error = RunError;

    fn with<T: SharesThread>(self, endpoints: Vec<T>) -> Result<Record, RunError> {
        let Hosting { plan, text, workers, observer } = self;
        run_hosted(plan, workers, host_nodes(plan, text, workers.len(), endpoints)?, observer)
    }
}

/// Messages that a queue between two nodes holds.
pub(crate) const fn queue_length(plan: &Plan) -> usize {
    plan.building.builder_slots as usize + CONTROL_MESSAGES
}

/// Runs nodes that each worker has, until run control has the record.
fn run_hosted<T: SharesThread>(
    plan: &Plan,
    doorbells: &[Arc<Doorbell>],
    hosted: Vec<Vec<Node<T>>>,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    let (notice_sender, notices) = mpsc::channel();
    let nodes = (0..plan.building.nodes()).map(NodeId);
    let placement: Vec<usize> = nodes.map(|node| worker_of(plan, node, doorbells.len())).collect();
    thread::scope(|scope| {
        let mut lines = Vec::new();
        for (doorbell, nodes) in doorbells.iter().zip(hosted) {
            let (order_sender, orders) = mpsc::channel();
            lines.push((order_sender, doorbell.clone()));
            let (desk, doorbell) = (Desk { orders, notices: notice_sender.clone() }, doorbell.clone());
            // The workers that there are end with their orders.
            limits::spawn_in(scope, move || {
                carry(nodes, desk, SPINS, |nodes, timeout| rest(nodes, &doorbell, timeout));
            })?;
        }
        drop(notice_sender);
        RunControl::new(plan, ThreadNodes { placement, lines }, &notices, observer).run(plan.transport.about().name)
    })
}

/// Lets a worker without work sleep.
fn rest<T: SharesThread>(nodes: &mut [Node<T>], doorbell: &Doorbell, timeout: Duration) {
    if T::RINGS {
        doorbell.wait(timeout, || nodes.iter().any(|node| node.link.transport.is_ready()));
    } else if let Some(node) = nodes.first_mut() {
        node.link.transport.wait(timeout);
    }
}

fn worker_count(plan: &Plan) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    plan.run.workers.map_or(cores, usize::from).clamp(1, plan.building.nodes().into())
}

/// Readout units and builders are dealt out in turn, so that each worker has its share of both; the event manager is
/// light and goes to the first.
fn worker_of(plan: &Plan, node: NodeId, workers: usize) -> usize {
    let (readouts, builders) = (plan.building.readout_nodes(), plan.building.builder_nodes());
    let index = match node {
        Config::EVENT_MANAGER => 0,
        node if builders.contains(node) => node.0 - builders.first.0,
        node => node.0 - readouts.first.0,
    };
    usize::from(index) % workers
}

/// The nodes of each worker, with their endpoints.
fn host_nodes<T: Transport>(
    plan: &Plan,
    text: &str,
    workers: usize,
    endpoints: Vec<T>,
) -> Result<Vec<Vec<Node<T>>>, NodeError> {
    let (run, count) = (run_number(plan), plan.building.nodes());
    let mut hosted: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
    for (node, endpoint) in (0..count).map(NodeId).zip(endpoints) {
        let role = open_role(plan, text, run, node, &endpoint)?;
        hosted[worker_of(plan, node, workers)].push(Node::new(node, role, Link::new(endpoint, count)));
    }
    Ok(hosted)
}

/// Where a worker hears its orders, and what wakes it.
type OrderLine = (mpsc::Sender<(NodeId, Order)>, Arc<Doorbell>);

struct ThreadNodes {
    /// The worker of each node.
    placement: Vec<usize>,
    lines: Vec<OrderLine>,
}

impl Nodes for ThreadNodes {
    fn order(&mut self, node: NodeId, order: Order) {
        let (sender, doorbell) = &self.lines[self.placement[node.index()]];
        // A worker that has ended has told why.
        let _ended = sender.send((node, order));
        doorbell.call();
    }

    fn fate(&mut self, _node: NodeId) -> Option<String> {
        None
    }
}
