//! The limits that run control keeps.

use alloc::vec::Vec;
use evb_core::{NodeId, NodeRange, Span};

/// The parts of an event builder that run control needs, and the limits of its waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of nodes: their ids are below it.
    pub nodes: u16,
    /// The node that numbers triggers. No run continues without it.
    pub event_manager: NodeId,
    /// Longest wait for all nodes to join.
    pub join_timeout: Span,
    /// Longest wait for all nodes to open, connect or prepare.
    pub ready_timeout: Span,
    /// Longest time for which nothing moves in a stopped run before it is given up.
    pub drain_timeout: Span,
    /// Time after which a run is stopped. Pauses do not count.
    pub duration: Option<Span>,
    /// Faults on purpose: nodes that die, each at a time after the start of a run.
    pub kills: Vec<(Span, NodeId)>,
    /// Time for which reports of lost peers are collected, after the first one, before a node is given up.
    pub report_window: Span,
    /// Ranges of nodes that exchange nothing among themselves. A node of a later range is given up rather than one of
    /// an earlier range, if it cannot be decided which of them is cut off. Nodes in no range talk to all others.
    pub groups: Vec<NodeRange>,
    /// Nodes without which no run continues: when one is lost, the run is stopped.
    pub required: Vec<NodeId>,
    /// Front ends hear run control: they start before the run, and hear of pauses and of the stop.
    pub front_ends: bool,
    /// Runs may follow each other without a stop.
    pub may_split: bool,
    /// When all lost nodes are there again, the next run begins with them, without a command.
    pub rejoin: bool,
    /// Fewest nodes of some ranges: when fewer are left, the run is stopped.
    pub least: Vec<(NodeRange, u16)>,
}

impl Config {
    /// Time in which a finishing run waits for nodes that their peers have given up.
    pub const LOST_GRACE: Span = Span::from_secs(1);

    /// Number of runs that begin for nodes that are there again, between two starts by the operator: a node that dies
    /// again and again must not cut the data into many short runs.
    pub const MOST_REJOINS: u32 = 8;

    /// An event builder with this number of nodes; node 0 is the event manager. Nodes have 30 s to join and 10 s for
    /// every other step.
    pub const fn new(nodes: u16) -> Self {
        Self {
            nodes,
            event_manager: NodeId(0),
            join_timeout: Span::from_secs(30),
            ready_timeout: Span::from_secs(10),
            drain_timeout: Span::from_secs(10),
            report_window: Span::from_secs(2),
            groups: Vec::new(),
            duration: None,
            kills: Vec::new(),
            front_ends: false,
            may_split: true,
            rejoin: false,
            required: Vec::new(),
            least: Vec::new(),
        }
    }
}
