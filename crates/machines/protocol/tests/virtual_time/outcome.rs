//! The outcome of a history, for checkers that know nothing of the machines.

use evb_control::RunState;
use evb_core::{EventId, NodeId, Time};
use evb_protocol::{Ending, FaultCounts, ManagerCounts, ReadoutCounts};
use std::collections::{BTreeMap, BTreeSet};

/// All runs of a history, and what run control says in the end.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) runs: Vec<Outcome>,
    pub(crate) state: RunState,
}

/// An event as a builder stored it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) builder: NodeId,
    /// Sources whose good fragment is in it.
    pub(crate) good: BTreeSet<u16>,
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) manager: ManagerCounts,
    pub(crate) drained: bool,
    /// Trigger times of the events, in the order of their numbers.
    pub(crate) triggered: Vec<Time>,
    /// All reports of the end of each event: the ending, the reporting node and the time.
    pub(crate) ended: BTreeMap<EventId, Vec<(Ending, NodeId, Time)>>,
    /// Everything stored of each event, in the order of time.
    pub(crate) stored: BTreeMap<EventId, Vec<Stored>>,
    pub(crate) faults: FaultCounts,
    pub(crate) orphaned: BTreeSet<NodeId>,
    pub(crate) readouts: Vec<ReadoutCounts>,
    /// Fragments that builders received.
    pub(crate) fragments: u64,
    /// Fragments that builders asked for, and second copies of them.
    pub(crate) asked: u64,
    pub(crate) repeated: u64,
    pub(crate) most_open: u64,
    /// Builders that had an event under construction in the end.
    pub(crate) building: BTreeSet<NodeId>,
    /// Readout units that held a fragment in the end.
    pub(crate) holding: BTreeSet<NodeId>,
    /// Fragments and questions that were lost, doubled or damaged on their way.
    pub(crate) harmed: u64,
    /// Nodes that were given up, with the time of that and the time of their return.
    pub(crate) gone: Vec<(NodeId, Time, Time)>,
    /// Nodes that run control gave up because their peers had lost them.
    pub(crate) excluded: Vec<NodeId>,
    pub(crate) end: Time,
    /// All nodes were ordered to begin.
    pub(crate) started: bool,
    /// Run control calls it over.
    pub(crate) over: bool,
    /// Run control calls it failed.
    pub(crate) failed: bool,
    /// Run control has ended events because nothing moved.
    pub(crate) stood_still: bool,
    /// The operator did not wait for all events.
    pub(crate) cut: bool,
    /// A node began something else before everything had come to rest.
    pub(crate) superseded: bool,
    /// Times at which pauses were reported to the event manager; `resumes` has the planned times of their ends.
    pub(crate) pauses: Vec<Time>,
    pub(crate) resumes: Vec<Time>,
}
