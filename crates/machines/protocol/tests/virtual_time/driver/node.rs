//! One node: its machine, and what the driver knows of it.

use super::What;
use crate::{planted::Planted, scenario::Tag};
use evb_core::{Machine, NodeId, SourceId, Time};
use evb_protocol::{wire::RunMark, *};
use std::collections::BTreeSet;

/// The machine of a node.
pub(super) enum Node {
    Manager(ManagerMachine<Tag>),
    Readout(Box<ReadoutMachine<Tag>>),
    Builder(BuilderMachine<Tag>),
}

/// Does the same with each kind of machine.
macro_rules! any_machine {
    ($node:expr, $machine:ident => $result:expr) => {
        match $node {
            Node::Manager($machine) => $result,
            Node::Readout($machine) => $result,
            Node::Builder($machine) => $result,
        }
    };
}
pub(super) use any_machine;

impl Node {
    /// A new machine for a node, and the command that starts it.
    pub(super) fn new(id: NodeId, config: &Config) -> (Self, What) {
        let config = config.clone();
        match id {
            Config::EVENT_MANAGER => (Self::Manager(ManagerMachine::new(config)), What::Manager(ManagerCommand::Start)),
            id if config.readout_nodes().contains(id) => {
                let start = ReadoutCommand::Start { through: evb_core::EventId(u64::MAX), last: true };
                (Self::Readout(Box::new(ReadoutMachine::new(config, SourceId(id.0 - 1), None))), What::Readout(start))
            }
            id => {
                let index = id.0 - config.builder_nodes().first.0;
                (Self::Builder(BuilderMachine::new(config, index)), What::Builder(BuilderCommand::Start))
            }
        }
    }

    pub(super) fn lose(&mut self, now: Time, peer: NodeId) {
        match self {
            Self::Manager(m) => m.handle_command(now, ManagerCommand::Lost(peer)),
            Self::Readout(m) => m.handle_command(now, ReadoutCommand::Lost(peer)),
            Self::Builder(m) => m.handle_command(now, BuilderCommand::Lost(peer)),
        }
    }

    pub(super) fn join(&mut self, now: Time, peer: NodeId) {
        match self {
            Self::Manager(m) => m.handle_command(now, ManagerCommand::Joined(peer)),
            Self::Readout(m) => m.handle_command(now, ReadoutCommand::Joined(peer)),
            Self::Builder(m) => m.handle_command(now, BuilderCommand::Joined(peer)),
        }
    }
}

/// The connections of the nodes, and the run on them, to which a happening belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// 0 while there are none.
    pub(super) connection: u32,
    pub(super) run: RunMark,
}

/// One node and what the driver knows of it.
pub(super) struct Slot {
    pub(super) node: Option<Planted<Node>>,
    /// The run that its machine is for.
    pub(super) run: usize,
    pub(super) mark: Mark,
    /// It has reported that it has finished.
    pub(super) finished: bool,
    /// Its process lives.
    pub(super) is_there: bool,
    /// Number of the process, or of the next one.
    pub(super) process: u32,
    /// The process that run control knows.
    pub(super) known: u32,
    /// Arrival time of the last order at the node; `noticed` is that of its last notice at run control.
    pub(super) ordered: Time,
    pub(super) noticed: Time,
    /// Time until which the node does nothing.
    pub(super) away: Time,
    /// Happenings that came while the node did nothing.
    pub(super) inbox: Vec<(Mark, What)>,
    /// Peers that it has given up: their connections are closed.
    pub(super) lost: BTreeSet<NodeId>,
    /// Its network is cut: it may never hear that its events are over.
    pub(super) cut_off: bool,
    /// Given up by its peers, and not back.
    pub(super) doomed: bool,
    /// Its disk, or its source, does nothing before this time.
    pub(super) held_up: Time,
    pub(super) timer: Time,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            node: None,
            run: 0,
            mark: Mark::default(),
            finished: false,
            is_there: false,
            process: 0,
            known: 0,
            ordered: Time::ZERO,
            noticed: Time::ZERO,
            away: Time::ZERO,
            inbox: Vec::new(),
            lost: BTreeSet::new(),
            cut_off: false,
            doomed: false,
            held_up: Time::ZERO,
            timer: Time::MAX,
        }
    }
}
