//! Many simulations, with the options of the command line.

use crate::{
    failure::Failure,
    memory_watch::MemoryWatch,
    progress::{ProgressArgs, SimulationProgress},
};
use clap::Args;
use evb::{ByteCount, OpenTrace, Part, Plan, Record, Simulations, TakeRecords};
use std::{num::NonZeroUsize, sync::atomic::AtomicBool};

/// The options of simulations and of their output.
#[derive(Args)]
pub(crate) struct HowArgs {
    /// Threads, one for each core by default: for several simulations at once, or for parts of a large network. The
    /// results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Most memory that the simulations may take together, such as `4 GB`; half of the machine's by default
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteCount>,
    /// Print JSON records, one on a line, instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl HowArgs {
    /// Simulates the open plans, and shows their progress. It returns the records of all that are there.
    pub(crate) fn simulate(
        &self,
        plans: Vec<&Plan>,
        parts: Vec<Part>,
        stop: &AtomicBool,
        trace: &OpenTrace<'_, Failure>,
        take: &mut dyn TakeRecords<Failure>,
    ) -> Result<Vec<Record>, Failure> {
        let open = parts.iter().filter(|part| matches!(part, Part::Open)).count();
        let progress = SimulationProgress::new(open, self.progress);
        let watch = MemoryWatch::begin(self.memory);
        let begin = |plan: &Plan| -> Box<dyn FnMut(&evb::SimulationProgress) + '_> {
            let line = progress.begin(plan);
            let most = watch.most();
            Box::new(move |now| {
                most.note(now);
                line.show(now);
            })
        };
        Simulations { plans, threads: self.threads, stop, trace, begin: &begin }.run(parts, take)
    }
}
