//! The reproduction of published values by the experiments of their papers, and how it hangs on their parameters.

use crate::Error;
use evb_experiment::{Experiment, Plan};
use evb_node::VERSION;
use evb_paper::{Paper, Parameter, Results, papers};
use evb_record::{PaperReport, Record, Sensitivity};

/// Experiments by their names.
type Experiments = Vec<(String, Experiment)>;

/// Some papers and their experiments.
pub struct Reproduction(Vec<(&'static Paper, Experiments)>);

impl Reproduction {
    /// The papers with these slugs, in the order of all papers; all papers if there is no slug. Each of `overrides` is
    /// a text `key.path=value`.
    ///
    /// # Errors
    /// A paper is unknown, its folder is invalid, or an override does not fit its experiments.
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
        let report = |(paper, experiments): &(&Paper, Experiments)| {
            let mut results = Results::default();
            take(&mut results, experiments, &mut records);
            Ok(paper.report(&results, VERSION)?)
        };
        self.0.iter().map(report).collect()
    }
}

/// Some papers, and the experiments with each assumed and calibrated parameter at each of its other values.
pub struct Variations {
    here: Reproduction,
    /// For each paper its parameters, and for each value of a parameter the experiments that depend on it.
    varied: Vec<Vec<(Parameter, Vec<Experiments>)>>,
}

impl Variations {
    /// The variations of the papers with these slugs, as of a [`Reproduction`].
    ///
    /// # Errors
    /// As of a reproduction; or a value of a parameter does not fit an experiment.
    pub fn new(slugs: &[String], overrides: &[String]) -> Result<Self, Error> {
        let here = Reproduction::new(slugs, overrides)?;
        let of_parameter = |paper: &Paper, parameter: Parameter| -> Result<_, Error> {
            let at = |values: &Vec<String>| -> Result<Experiments, Error> {
                let all = [overrides, values.as_slice()].concat();
                Ok(paper.experiments_of(&all, |name| parameter.concerns(name))?)
            };
            let experiments = parameter.vary.iter().map(at).collect::<Result<_, _>>()?;
            Ok((parameter, experiments))
        };
        let of_paper = |(paper, _): &(&'static Paper, Experiments)| {
            paper.parameters()?.into_iter().map(|parameter| of_parameter(paper, parameter)).collect()
        };
        let varied = here.0.iter().map(of_paper).collect::<Result<_, Error>>()?;
        Ok(Self { here, varied })
    }

    /// The plans of all experiments, with the values of the files first.
    pub fn plans(&self) -> Vec<&Plan> {
        let varied = self.varied.iter().flatten().flat_map(|(_, points)| points).flatten();
        self.here.plans().into_iter().chain(varied.flat_map(|(_, experiment)| experiment.plans())).collect()
    }

    /// The report of each paper and the sensitivity to each of its parameters, from the records of all
    /// [plans](Self::plans) in their order.
    ///
    /// # Errors
    /// A record is missing.
    pub fn sensitivities(&self, records: Vec<Record>) -> Result<Vec<(PaperReport, Vec<Sensitivity>)>, Error> {
        let mut records = records.into_iter();
        let mut results = vec![Results::default(); self.here.0.len()];
        for (results, (_, experiments)) in results.iter_mut().zip(&self.here.0) {
            take(results, experiments, &mut records);
        }
        let mut found = Vec::new();
        for ((here, (paper, _)), parameters) in results.iter().zip(&self.here.0).zip(&self.varied) {
            let report = paper.report(here, VERSION)?;
            let mut sensitivities = Vec::new();
            for (parameter, points) in parameters {
                let at = |experiments: &Experiments| {
                    let mut results = here.clone();
                    take(&mut results, experiments, &mut records);
                    paper.report(&results, VERSION)
                };
                let varied = points.iter().map(at).collect::<Result<Vec<_>, _>>()?;
                sensitivities.push(paper.sensitivity(parameter, &report, &varied)?);
            }
            found.push((report, sensitivities));
        }
        Ok(found)
    }
}

/// Puts the next records into the results of these experiments, in place of others.
fn take(results: &mut Results, experiments: &Experiments, records: &mut impl Iterator<Item = Record>) {
    for (name, experiment) in experiments {
        results.add(name, records.by_ref().take(experiment.plans().len()).collect());
    }
}
