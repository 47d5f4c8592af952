//! The reproduction of published values by the experiments of their papers.

use crate::Error;
use evb_experiment::{Experiment, Plan};
use evb_node::VERSION;
use evb_paper::{Paper, Results, papers};
use evb_record::{PaperReport, Record};

/// Some papers and their experiments.
pub struct Reproduction(Vec<(&'static Paper, Vec<(String, Experiment)>)>);

impl Reproduction {
    /// The papers with these slugs, in the order of all papers; all papers if there is no slug. Each of `overrides` is
    /// a text `key.path=value`.
    ///
    /// # Errors
    /// There is no such paper, its folder is invalid, or an override does not fit its experiments.
    pub fn new(slugs: &[String], overrides: &[String]) -> Result<Self, Error> {
        if let Some(unknown) = slugs.iter().find(|slug| papers().iter().all(|paper| paper.slug != **slug)) {
            return Err(Error::NoPaper(unknown.clone()));
        }
        let chosen = papers().iter().filter(|paper| slugs.is_empty() || slugs.iter().any(|slug| slug == paper.slug));
        let with_experiments = |paper: &'static Paper| {
            paper.check()?;
            Ok((paper, paper.experiments(overrides)?))
        };
        chosen.map(with_experiments).collect::<Result<_, _>>().map(Self)
    }

    /// The plans of all experiments of all papers.
    pub fn plans(&self) -> Vec<&Plan> {
        self.0.iter().flat_map(|(_, experiments)| experiments).flat_map(|(_, experiment)| experiment.plans()).collect()
    }

    /// The reports of the papers, from the records of all [plans](Self::plans) in their order.
    ///
    /// # Errors
    /// A record is missing.
    pub fn reports(&self, records: Vec<Record>) -> Result<Vec<PaperReport>, Error> {
        let mut records = records.into_iter();
        let report = |(paper, experiments): &(&Paper, Vec<(String, Experiment)>)| {
            let mut results = Results::default();
            for (name, experiment) in experiments {
                results.add(name, records.by_ref().take(experiment.plans().len()).collect());
            }
            Ok(paper.report(&results, VERSION)?)
        };
        self.0.iter().map(report).collect()
    }
}
