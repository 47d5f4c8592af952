//! The start of a simulation: nodes, slots of the traffic shaping, and the first planned events.

use super::{Simulation, size};
use crate::{
    SimulateError, background,
    event::Event,
    input::Input,
    jitter::JitterTimes,
    lineup::BackgroundQueues,
    nic::Slots,
    node::{Node, NodeUnit},
    peers::Peers,
    slot_times::SlotTimes,
    storage::Storage,
};
use evb_core::{EventCounter, Machine as _, NodeId, SourceId, Time};
use evb_experiment::{FaultAction, Workload};
use evb_fabric::Service;
use evb_patterns::{Traffic, TrafficCommand};
use evb_protocol::{Config, Shaping, ShapingStep};
use evb_sources::{INLET_BITS, SizeModel};
use evb_unit::{BuilderUnit, EventManager, ReadoutUnit, Sources, open_options, shaping::Shaper};

/// The purposes of the random streams of jitter.
const NIC_JITTER: u64 = 103;
const HOST_JITTER: u64 = 104;

impl Simulation<'_> {
    pub(super) fn make_nodes(&self) -> Result<Vec<Node>, SimulateError> {
        let (plan, config) = (self.plan, &self.plan.building);
        let open = |source: SourceId| SizeModel::open(plan.source(source), &open_options(plan, source));
        let is_second = plan.bundling.slice.is_some();
        let input = |source: SourceId| if is_second { Ok(Input::Inlet) } else { open(source).map(Input::Sizes) };
        let live = is_second.then(|| EventCounter::new(INLET_BITS));
        let make = |id: NodeId| -> Result<NodeUnit, SimulateError> {
            if self.net.border.beyond_node(id).is_some() {
                return Ok(NodeUnit::Remote);
            }
            if let Some(index) = plan.background_of(id) {
                let table = &plan.background[index];
                let config = &table.traffic.config;
                let machine = Box::new(Traffic::new(config, id, table.receiver_beside(id)));
                let sizes = config.senders.contains(id).then(|| background::open(plan, table, id)).transpose()?;
                return Ok(NodeUnit::Background(machine, sizes));
            }
            let is_source = config.readout_nodes().contains(id);
            let unit = id.0.wrapping_sub(config.readout_nodes().first.0);
            Ok(match &plan.workload {
                Workload::Traffic(traffic) => {
                    let machine = Traffic::new(&traffic.config, id, plan.receiver_beside(id));
                    NodeUnit::Traffic(Box::new(machine), plan.data_source(id).map(open).transpose()?)
                }
                Workload::EventBuilding if id == Config::EVENT_MANAGER => {
                    NodeUnit::Manager(Box::new(EventManager::new(plan)))
                }
                Workload::EventBuilding if is_source => {
                    NodeUnit::Readout(Box::new(ReadoutUnit::new(plan, id, Sources::open(plan, unit, input)?, live)))
                }
                Workload::EventBuilding => {
                    let index = id.0 - config.builder_nodes().first.0;
                    NodeUnit::Builder(Box::new(BuilderUnit::new(plan, index, Storage::of(plan, id))))
                }
            })
        };
        (0..plan.all_nodes()).map(NodeId).map(|id| Ok(Node::new(make(id)?))).collect()
    }

    /// Gives each interface a queue for each peer, where its service wants them. To be called when the slots are set.
    pub(super) fn set_peers(&mut self) {
        if self.net.network.config.nic.service != Service::PeersInTurn {
            return;
        }
        let most_active = self.net.network.config.nic.messages.into();
        // Slots have their own order.
        for nic in self.nics.iter_mut().filter(|nic| nic.slots.is_none()) {
            nic.lineups.iter_mut().for_each(|lineup| lineup.peers = Some(Peers::new(most_active)));
        }
    }

    /// Gives each interface the queues of background traffic, if there is any.
    pub(super) fn set_background(&mut self) {
        if self.plan.background.is_empty() {
            return;
        }
        let priority = self.plan.data_priority();
        let lineups = self.nics.iter_mut().flat_map(|nic| &mut nic.lineups);
        lineups.for_each(|lineup| lineup.background = Some(BackgroundQueues::new(priority)));
    }

    /// Gives each interface and host its random times.
    pub(super) fn set_jitter(&mut self) {
        let (seed, config) = (self.plan.run.seed, &self.net.network.config);
        if let Some(jitter) = &config.nic.jitter {
            for (host, nic) in self.nics.iter_mut().enumerate() {
                nic.jitter = Some(JitterTimes::new(jitter, (seed, host, NIC_JITTER)));
            }
        }
        let of_host = |host| Some(JitterTimes::new(config.host.jitter.as_ref()?, (seed, host, HOST_JITTER)));
        self.jitter = (0..self.nics.len()).filter_map(of_host).collect();
    }

    /// Gives the interfaces of readout units the slots of the traffic shaping.
    pub(super) fn set_slots(&mut self) {
        let mut config = self.plan.building.clone();
        if let Shaping::RateDivision { packet } = &mut config.shaping {
            *packet = (*packet).min(self.net.network.config.nic.packet);
        }
        let full = match config.shaping {
            Shaping::BarrelShifter { bucket, step: ShapingStep::Link, .. } => Some(size(bucket.0)),
            _ => None,
        };
        let (first_builder, priority) = (config.builder_nodes().first, self.plan.data_priority());
        for (unit, node) in (0..).zip(config.readout_nodes().iter()) {
            if self.net.border.beyond_node(node).is_some() {
                continue;
            }
            if let (Some(host), Some(mut shaper)) = (self.host(node), Shaper::new(&config, unit)) {
                shaper.begin();
                let is_by_clock = shaper.is_by_clock();
                let times = SlotTimes::new(&self.plan.network.slot_errors, self.plan.run.seed, node);
                self.nics[host].slots = Some(Slots { shaper, times, node, first_builder, full, priority });
                if is_by_clock {
                    self.plan_timeout(node, Time::ZERO);
                }
            }
        }
    }

    pub(super) fn plan_start(&mut self) {
        for (index, fault) in self.plan.network.faults.iter().enumerate() {
            self.net.queue.push(Time(fault.at.0), Event::Fault { index: index as u16 });
            if let Some(until) = fault.until {
                self.net.queue.push(Time(until.0), Event::Mend { index: index as u16 });
            }
        }
        for fault in &self.plan.faults {
            if let FaultAction::Kill { at } = fault.action {
                self.net.queue.push(Time(at.0), Event::Kill { node: fault.node.0 });
            }
        }
        if let Some(warmup) = self.plan.run.warmup.filter(|warmup| warmup.0 > 0) {
            self.net.queue.push(Time(warmup.0), Event::Measure);
        }
        if let Some(duration) = self.plan.trigger.duration {
            self.net.queue.push(Time(duration.0), Event::Stop);
        }
        if self.computing.is_some() {
            self.plan_sample(0);
        }
        self.plan_background();
    }

    pub(super) fn start(&mut self) {
        let now = Time::ZERO;
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            match (&mut node.unit, &self.plan.workload) {
                (NodeUnit::Manager(unit), _) => unit.start(now),
                (NodeUnit::Readout(unit), _) => unit.start(now),
                (NodeUnit::Builder(unit), _) => unit.start(now),
                (NodeUnit::Traffic(machine, _), Workload::Traffic(traffic)) => {
                    let saturating = self.arrivals.saturating;
                    let messages = traffic.messages;
                    machine.handle_command(now, TrafficCommand::Start { saturating, messages });
                }
                (NodeUnit::Traffic(..), Workload::EventBuilding) | (NodeUnit::Background(..) | NodeUnit::Remote, _) => {
                }
            }
        }
        (0..self.nodes.len()).for_each(|index| self.drain(NodeId(index as u16)));
        for (node, at) in self.arrivals.first() {
            if self.net.border.beyond_node(node).is_none() {
                self.net.queue.push(at, Event::Arrival { node: node.0 });
            }
        }
        if self.is_gathering() && self.arrivals.saturating {
            let Workload::Traffic(traffic) = &self.plan.workload else { return };
            (0..traffic.config.window).for_each(|_| self.offer_event());
        }
        for host in 0..self.nics.len() {
            self.feed_nic(host);
        }
        self.start_mapping();
    }
}
