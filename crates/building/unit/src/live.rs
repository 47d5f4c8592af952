//! The present state of a run, for displays and metrics.

use crate::{Account, BufferFill, Distribution, OpenCounts, Sizes};
use evb_experiment::Plan;
use evb_record::{Record, WaitingSource};

/// The present state of a run.
#[derive(Clone, Debug)]
pub struct Live {
    /// The record of the run so far. Its rates are means from the start.
    pub record: Record,
    /// What each readout unit holds.
    pub readouts: Vec<BufferFill>,
    /// What each builder unit works on.
    pub builders: Vec<OpenCounts>,
    /// Live sources that the run waits for.
    pub waiting: Vec<WaitingSource>,
    /// Times from trigger to stored, in nanoseconds.
    pub latency_ns: Distribution,
    /// Sizes that all builders saw.
    pub sizes: Sizes,
}

impl Account {
    /// The run so far, after this time.
    pub fn live(&self, plan: &Plan, transport: &str, seconds: f64) -> Live {
        let mut sizes = Sizes::default();
        self.builders.iter().for_each(|builder| sizes.add(&builder.sizes));
        Live {
            readouts: self.readouts.iter().map(|readout| readout.held).collect(),
            builders: self.builders.iter().map(|builder| builder.open.clone()).collect(),
            waiting: self.waiting_sources(seconds),
            latency_ns: self.manager.latency_ns.clone(),
            sizes,
            record: self.clone().record(plan, transport, seconds),
        }
    }
}
