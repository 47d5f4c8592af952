//! A run in one process: worker threads carry the nodes, messages go by reference.

use crate::control::{NodeError, Order};
use crate::link::Link;
use crate::roles::{open_role, run_number};
use crate::run_control::{Nodes, Observer, RunControl, RunError};
use crate::worker::{Desk, Node, carry};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_record::Record;
use evb_transport::{
    doorbell::Doorbell,
    in_process::{self, InProcess},
};
use std::{
    sync::{Arc, mpsc},
    thread,
};

/// Polls without work before a worker yields: some 20 microseconds.
const SPINS: u32 = 200;
/// Messages that a queue between two nodes holds beside one fragment for each slot of a builder.
const CONTROL_MESSAGES: usize = 64;

/// Builds events in threads of this process.
///
/// # Errors
/// [`RunError`] when a source or a file cannot be opened. What goes wrong later is told by the record.
pub fn run_threads(plan: &Plan, text: &str, observer: &mut dyn Observer) -> Result<Record, RunError> {
    let workers = worker_count(plan);
    let doorbells: Vec<_> = (0..workers).map(|_| Arc::new(Doorbell::new())).collect();
    let mut hosted = host_nodes(plan, text, &doorbells)?;
    let (notice_sender, notices) = mpsc::channel();
    let placement: Vec<usize> = (0..plan.building.nodes()).map(|node| worker_of(plan, NodeId(node), workers)).collect();
    thread::scope(|scope| {
        let mut lines = Vec::new();
        for (doorbell, nodes) in doorbells.iter().zip(hosted.drain(..)) {
            let (order_sender, orders) = mpsc::channel();
            lines.push((order_sender, doorbell.clone()));
            let (desk, doorbell) = (Desk { orders, notices: notice_sender.clone() }, doorbell.clone());
            scope.spawn(move || carry_by_doorbell(nodes, desk, &doorbell));
        }
        drop(notice_sender);
        RunControl::new(plan, ThreadNodes { placement, lines }, &notices, observer).run("in-process")
    })
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

fn host_nodes(plan: &Plan, text: &str, doorbells: &[Arc<Doorbell>]) -> Result<Vec<Vec<Node<InProcess>>>, NodeError> {
    let (run, count) = (run_number(), plan.building.nodes());
    let bell_of = |node| doorbells[worker_of(plan, NodeId(node), doorbells.len())].clone();
    let bells: Vec<_> = (0..count).map(bell_of).collect();
    let capacity = plan.building.builder_slots as usize + CONTROL_MESSAGES;
    let mut hosted: Vec<Vec<_>> = doorbells.iter().map(|_| Vec::new()).collect();
    for (node, endpoint) in (0..count).map(NodeId).zip(in_process::connect_workers(capacity, &bells)) {
        let role = open_role(plan, text, run, node, &endpoint)?;
        let worker = worker_of(plan, node, doorbells.len());
        hosted[worker].push(Node::new(node, role, Link::new(endpoint, count)));
    }
    Ok(hosted)
}

fn carry_by_doorbell(nodes: Vec<Node<InProcess>>, desk: Desk, doorbell: &Doorbell) {
    carry(nodes, desk, SPINS, |nodes, timeout| {
        doorbell.wait(timeout, || nodes.iter().any(|node| node.link.transport.is_ready()));
    });
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
