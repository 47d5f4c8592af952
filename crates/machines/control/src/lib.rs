//! Run control: the state machine that configures, starts, stops and watches the nodes of an event builder.
//!
//! It has no connection, process or clock. A driver hands it the commands of an operator, the notices of the nodes and
//! the time; it returns orders for the nodes, events for people, and the time at which it wants to be called again. The
//! same machine runs threads, processes and MPI ranks, and is tested in virtual time.
//!
//! Nodes outlive a run. [`Command::Configure`] gathers them and connects them to each other; each [`Command::Start`]
//! then begins a separate run, without new processes.
//!
//! A run can follow another without a stop: the event manager turns triggers away until every event has ended, and all
//! nodes change files and begin another account, while machines, connections and sources continue. A split by event
//! number, without that moment, would need two accounts, storages and filters in each node. It would save milliseconds,
//! so the moment is measured instead.
//!
//! When nodes lose each other, one rule finds those that are cut off: see the module `lost_peers`.
#![no_std]

extern crate alloc;

mod config;
mod control;
mod lost_peers;
mod nodes;
mod state;

pub use config::Config;
pub use control::{Control, Timer};
pub use nodes::Loss;
pub use state::{ConfigureStep, RunState};

use alloc::vec::Vec;
use evb_core::{NodeId, Span};
use serde::{Deserialize, Serialize};

/// A command of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Gather all nodes and connect them to each other.
    Configure,
    /// Begin a run. Nodes that are missing since the last run are gathered first.
    Start,
    /// Turn away triggers until [`Command::Resume`]; events that were triggered are built.
    Pause,
    /// Take triggers again.
    Resume,
    /// End the run at an event and begin the next one with the same nodes: no node stops, and events keep their
    /// numbers. If all lost nodes are there again, the run is stopped instead, and the next one begins with all nodes.
    Split,
    /// Take no more triggers and build what was triggered. The second one stores open events with the fragments that
    /// are there; the third waits for them no longer.
    Stop,
    /// End the run without waiting for open events: they are lost. What was stored stays valid. The second one does not
    /// wait for nodes that close their files either.
    Abort,
    /// Let all nodes end.
    Shutdown,
}

impl Command {
    /// All commands.
    pub const ALL: [Self; 8] =
        [Self::Configure, Self::Start, Self::Pause, Self::Resume, Self::Split, Self::Stop, Self::Abort, Self::Shutdown];

    /// The command with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }

    /// The name by which people know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Start => "start",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Split => "split",
            Self::Stop => "stop",
            Self::Abort => "abort",
            Self::Shutdown => "quit",
        }
    }
}

/// A notice of one node, or of the driver that watches over its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The node takes orders: for the first time, or again after it was gone.
    Joined,
    /// The node has carried out [`Order::Open`], [`Order::Connect`], [`Order::Prepare`] or [`Order::Arm`].
    Ready,
    /// The node has carried out [`Order::Reset`]. What it said before belongs to an earlier configuration.
    Reset,
    /// Something moved: an event ended, or bytes were received or stored.
    Moved,
    /// Every triggered event has ended, after [`Order::Settle`] (event manager).
    Settled,
    /// Every triggered event has ended, and there will be no more (event manager).
    Drained,
    /// No builder unit is left (event manager).
    NoBuilders,
    /// The node has lost the connection to a peer.
    LostPeer(NodeId),
    /// The node cannot continue.
    Failed,
    /// The node has closed its files and sent its last report of the run, after [`Order::Finish`] or [`Order::Next`].
    Finished,
    /// The node takes part in the present run again, without its former state.
    Rejoined,
    /// The node is gone: its process has ended, or its connection.
    Gone,
}

/// An order for one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Open the endpoint of the transport and say where it is.
    Open,
    /// Connect to all peers.
    Connect,
    /// Open sources and files for the next run.
    Prepare,
    /// Start the front ends that hear run control, for the run that is prepared.
    Arm,
    /// Begin the run.
    Start,
    /// Take no triggers for now (event manager). Let front ends that hear run control pause.
    Pause,
    /// Take triggers again (event manager). Let those front ends resume.
    Resume,
    /// Turn triggers away, count them, and say when all events have ended (event manager).
    Settle,
    /// Close the files, send the last report of the run, and open files for the next one. Everything else continues.
    Next,
    /// Take no more triggers (event manager). Stop front ends that hear run control.
    Stop,
    /// End events with the fragments that are there: no more will come (builder units).
    Cut,
    /// Give up this node: other nodes have lost it (event manager), or it is the event manager (all others).
    Lost(NodeId),
    /// Close the files and send the last report. A node that has failed leaves its peers.
    Finish,
    /// Drop sources, files and endpoint, and wait for [`Order::Open`].
    Reset,
    /// End the process.
    Exit,
    /// Stop dead, as in a crash: a fault on purpose, or the end of a node that does not answer.
    Die,
}

/// An event for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Run control has entered this state.
    State(RunState),
    /// A node is lost to the run. A node that its peers have lost may turn out to be gone.
    Lost {
        /// The node.
        node: NodeId,
        /// The kind of loss.
        loss: Loss,
    },
    /// A lost node takes part again.
    Back(NodeId),
    /// A lost node is there again, and takes part in the next run.
    Waits(NodeId),
    /// The next run has begun without a stop, with the same nodes.
    NextRun {
        /// Time from the start of the run before to the end of its last event.
        elapsed: Span,
        /// Time for which triggers were turned away.
        switched: Span,
    },
    /// Nodes that have not done a step of the configuration in time.
    Late {
        /// The step.
        step: ConfigureStep,
        /// The nodes.
        nodes: Vec<NodeId>,
    },
    /// A node ended or failed while the nodes were configured or prepared.
    NotReady {
        /// The step.
        step: ConfigureStep,
        /// The node.
        node: NodeId,
    },
    /// The run stood still before it was drained: open events are stored with the fragments that are there.
    NotDrained,
    /// No builder unit is left, and events stay unbuilt.
    NoBuilders,
    /// A required node is lost, or too few nodes are left: the run is stopped.
    TooFew,
    /// The command has no meaning in this state.
    Refused {
        /// The command.
        command: Command,
        /// The state.
        state: RunState,
    },
}
