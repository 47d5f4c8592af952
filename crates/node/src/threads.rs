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
use evb_experiment::{Plan, TransportKind};
use evb_protocol::Config;
use evb_record::Record;
use evb_transport::{HEAD_BYTES, OverLayer, Transport, doorbell::Doorbell, in_process};
use evb_transport_rtl::{Pace, RtlLayer, RtlOptions, cluster, prepare};
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
    let doorbells: Vec<_> = (0..worker_count(plan)).map(|_| Arc::new(Doorbell::new())).collect();
    if let TransportKind::VeloRtl { wires } = plan.transport {
        let endpoints = simulated(plan, wires, observer)?;
        let hosted = host_nodes(plan, text, doorbells.len(), endpoints)?;
        return run_hosted(plan, &doorbells, hosted, observer, |nodes, _, timeout| {
            if let Some(node) = nodes.first_mut() {
                node.link.transport.wait(timeout);
            }
        });
    }
    let bell_of = |node| doorbells[worker_of(plan, NodeId(node), doorbells.len())].clone();
    let bells: Vec<_> = (0..plan.building.nodes()).map(bell_of).collect();
    let hosted = host_nodes(plan, text, doorbells.len(), in_process::connect_workers(queue_length(plan), &bells))?;
    run_hosted(plan, &doorbells, hosted, observer, |nodes, doorbell, timeout| {
        doorbell.wait(timeout, || nodes.iter().any(|node| node.link.transport.is_ready()));
    })
}

/// Messages that a queue between two nodes holds.
pub(crate) const fn queue_length(plan: &Plan) -> usize {
    plan.building.builder_slots as usize + CONTROL_MESSAGES
}

/// Endpoints of the VELO hardware, whose clock goes on with each look of any node.
fn simulated(plan: &Plan, wires: u32, observer: &mut dyn Observer) -> Result<Vec<OverLayer<RtlLayer>>, NodeError> {
    let options = RtlOptions {
        link: wires,
        max_bytes: longest_body(plan) + HEAD_BYTES,
        pace: Pace::Free,
        ..RtlOptions::default()
    };
    let nodes = plan.building.nodes().into();
    prepare(nodes, &options, &mut |text| observer.note(text)).map_err(NodeError::new)?;
    let layers = cluster(nodes, &options).map_err(NodeError::new)?;
    Ok(layers.into_iter().map(OverLayer::new).collect())
}

/// Runs nodes that each worker has, until run control has the record. A worker without work rests as `rest` says.
fn run_hosted<T: Transport>(
    plan: &Plan,
    doorbells: &[Arc<Doorbell>],
    hosted: Vec<Vec<Node<T>>>,
    observer: &mut dyn Observer,
    rest: impl Fn(&mut [Node<T>], &Doorbell, Duration) + Copy + Send,
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
        RunControl::new(plan, ThreadNodes { placement, lines }, &notices, observer).run(plan.transport.name())
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
