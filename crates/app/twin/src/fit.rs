//! The fit of the costs of a machine to runs on it.

use crate::{
    FitPoint, Machine, TwinError,
    costs::{Costs, Kind},
    least_squares::{Equation, minimum, solve},
};
use evb::{Part, Simulations};
use evb_core::Frequency;
use evb_experiment::{CpuFit, CpuPlan, Interruption, Plan};
use evb_record::{Record, median, spread};
use std::{fmt::Write as _, sync::atomic::AtomicBool};

/// The residual from which on runs count less.
const USUAL_RESIDUAL: f64 = 0.2;
/// The part of the runs whose errors are within the band.
const BAND: f64 = 0.9;

/// The event rate of a run of the fit, real and simulated with the fitted costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The settings of the run.
    pub name: String,
    /// Median of the real event rates, in hertz.
    pub real_hz: f64,
    /// Half of the difference of the highest and the lowest real rate, as a part of the median.
    pub spread: f64,
    /// Simulated event rate, in hertz.
    pub simulated_hz: f64,
}

impl Residual {
    /// The error of the simulated rate, as a part of the real one.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.simulated_hz / self.real_hz - 1.0
    }
}

/// The costs of a machine, and how well they reproduce the runs that they were fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    transport: String,
    reference_hz: f64,
    costs: Costs,
    /// What each cost may be off by, in nanoseconds; `None` if the runs say less about it than its usual value.
    uncertainties: Vec<Option<f64>>,
    /// The runs.
    pub residuals: Vec<Residual>,
}

/// A run with its median rate.
struct Measured<'a> {
    point: &'a FitPoint,
    real_hz: f64,
    spread: f64,
}

impl Fit {
    /// Fits the costs to event rates of runs: of each point several, in hertz. `reference_hz` is the rate of
    /// [`reference`](crate::reference).
    ///
    /// The squares of the logarithms of simulated over real rates have the least sum, together with those of costs over usual
    /// costs, which count little.
    ///
    /// # Errors
    /// A run built no events, or cannot be simulated.
    pub fn new(
        transport: &str,
        machine: Machine,
        reference_hz: f64,
        runs: &[(FitPoint, Vec<f64>)],
    ) -> Result<Self, TwinError> {
        let measured = runs.iter().map(|(point, rates)| Measured::new(point, rates)).collect::<Result<Vec<_>, _>>()?;
        let processes = measured.first().is_some_and(|run| !run.point.plan().0.transport.info().is_one_process());
        let kind = Kind { machine, processes };
        let found = minimum(kind.usual().logarithms(), |all| {
            let costs: Vec<_> = all.iter().map(|logarithms| kind.costs(logarithms)).collect();
            let rates = simulated_rates(&measured, &costs)?;
            Ok::<_, TwinError>(
                rates.iter().zip(&costs).map(|(rates, costs)| residuals(&measured, rates, costs)).collect(),
            )
        })?;
        let costs = kind.costs(&found.variables);
        let uncertainties = uncertainties(&found.equations, measured.len(), &costs.values);
        let rates = simulated_rates(&measured, std::slice::from_ref(&costs))?.remove(0);
        let residuals = measured.iter().zip(rates).map(|(run, simulated_hz)| Residual {
            name: run.point.name.clone(),
            real_hz: run.real_hz,
            spread: run.spread,
            simulated_hz,
        });
        Ok(Self { transport: transport.into(), reference_hz, uncertainties, residuals: residuals.collect(), costs })
    }

    /// Per cent by which simulated event rates differ from those of the runs, of nine in ten at most.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        let mut errors: Vec<f64> = self.residuals.iter().map(|run| run.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let at = (errors.len() as f64 * BAND).ceil() as usize;
        100.0 * errors.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// Per cent by which the runs of one kind varied, of half of the kinds at most.
    #[must_use]
    pub fn spread_percent(&self) -> f64 {
        let spreads: Vec<f64> = self.residuals.iter().map(|run| run.spread).collect();
        100.0 * median(&spreads)
    }

    /// The machine with these costs.
    #[must_use]
    pub fn plan(&self) -> CpuPlan {
        let reference = Frequency((self.reference_hz * 1000.0).round() as u64);
        let fit = CpuFit { error_percent: self.error_percent(), reference };
        CpuPlan { fit: Some(fit), ..self.costs.plan() }
    }

    /// The text of a network file, for `evb twin`, and for `evb simulate --network`.
    #[must_use]
    pub fn file(&self) -> String {
        let plan = self.plan();
        let mut text = format!(
            "# What event building over {} costs on this machine, as `evb twin --fit` found.\n",
            self.transport
        );
        let _infallible = writeln!(text, "# Runs of one kind varied by {:.0} % typically.", self.spread_percent());
        text += "# Event rates of the runs, real and simulated with these costs:\n#\n";
        for run in &self.residuals {
            let (real, simulated) = (run.real_hz * 1e-3, run.simulated_hz * 1e-3);
            let error = run.error() * 100.0;
            let beyond = if error.abs() > self.error_percent() { "  outside the band" } else { "" };
            let _infallible =
                writeln!(text, "# {real:10.1} kHz {simulated:10.1} kHz {error:+6.1} %  {}{beyond}", run.name);
        }
        let nodes = if plan.processes { "processes" } else { "threads" };
        let _infallible = write!(
            text,
            "\n[network]\npreset = \"ideal\"\nfitted_to = {:?}\n\n[network.cpu]\ncores = {}\ncomputers = \"one\"\nmessages = \"memory\"\n\
             nodes = {nodes:?}\n{}cache.size = \"{} B\" # of a core\nslice = \"{}\" # assumed\n\
             {}\n\
             fit = {{ error = {:.1}, reference = \"{:.3} Hz\" }}\n",
            self.transport,
            plan.cores,
            self.costs.lines(&self.uncertainties),
            self.costs.kind.machine.cache,
            plan.slice,
            interruptions(self.costs.kind.machine.interruptions.as_deref()),
            self.error_percent(),
            self.reference_hz,
        );
        text
    }
}

/// The line of the interruptions, or a comment if nothing is known of them.
fn interruptions(known: Option<&[Interruption]>) -> String {
    let Some(known) = known else {
        return "# interruptions are not known: no thread could be bound to each of the cores".into();
    };
    let one =
        |Interruption { every, length }: &Interruption| format!("{{ every = \"{every}\", length = \"{length}\" }}");
    let all: Vec<_> = known.iter().map(one).collect();
    format!("interruptions = [{}] # measured on cores without other work", all.join(", "))
}

impl<'a> Measured<'a> {
    fn new(point: &'a FitPoint, rates: &[f64]) -> Result<Self, TwinError> {
        let (real_hz, spread) = (median(rates), spread(rates));
        if real_hz > 0.0 { Ok(Self { point, real_hz, spread }) } else { Err(TwinError::NoEvents(point.name.clone())) }
    }
}

/// What the costs miss: of each run the logarithm of its simulated over its real rate, and how unusual each cost is.
fn residuals(measured: &[Measured<'_>], rates: &[f64], costs: &Costs) -> Vec<f64> {
    let of_runs = measured.iter().zip(rates).map(|(run, simulated_hz)| bounded((simulated_hz / run.real_hz).ln()));
    of_runs.chain(costs.unusual()).collect()
}

/// A residual that counts less the larger it is: a run of which the model knows nothing must not decide about all costs (the
/// Cauchy loss; P. Huber, Robust Statistics, 1981).
fn bounded(residual: f64) -> f64 {
    let part = residual / USUAL_RESIDUAL;
    residual.signum() * USUAL_RESIDUAL * (part * part).ln_1p().sqrt()
}

/// The event rates of all runs with each of these costs, in hertz.
fn simulated_rates(measured: &[Measured<'_>], costs: &[Costs]) -> Result<Vec<Vec<f64>>, TwinError> {
    let with = |costs: &Costs| {
        let cpu = costs.plan();
        let of = |run: &Measured<'_>| {
            let mut plan = run.point.simulated().clone();
            plan.network.cpu = Some(cpu.clone());
            plan
        };
        measured.iter().map(of).collect::<Vec<_>>()
    };
    let plans: Vec<Plan> = costs.iter().flat_map(with).collect();
    let simulations = Simulations {
        plans: plans.iter().collect(),
        threads: None,
        stop: &AtomicBool::new(false),
        trace: &|_| Ok::<_, TwinError>(None),
        begin: &|_| Box::new(|_| {}),
    };
    let records = simulations.run(vec![Part::Open; plans.len()], &mut ())?;
    let rates: Vec<_> = records.iter().map(rate).collect();
    Ok(rates.chunks(measured.len().max(1)).map(<[f64]>::to_vec).collect())
}

/// The event rate of a simulation, in hertz; never zero, since it has a logarithm.
fn rate(record: &Record) -> f64 {
    record.event_rate_hz.max(1.0)
}

/// The uncertainty of each cost: its change when a tenth of the runs is left out, scaled to all of them (the jackknife by
/// groups), with the linear equations near the fit. The first `runs` of these are those of runs, and the others those of usual
/// values. `None` if the former say less about a cost than the latter.
fn uncertainties(equations: &[Equation], runs: usize, values: &[f64]) -> Vec<Option<f64>> {
    const GROUPS: usize = 10;
    let without = |group: usize| {
        let kept = equations.iter().enumerate().filter(|(at, _)| *at >= runs || at % GROUPS != group);
        solve(&kept.map(|(_, equation)| equation.clone()).collect::<Vec<_>>())
    };
    let all = solve(equations);
    let parts: Vec<_> = (0..GROUPS).map(without).collect();
    let (of_runs, of_usual) = equations.split_at(runs.min(equations.len()));
    let weight = |equations: &[Equation], at: usize| equations.iter().map(|one| one.factors[at].powi(2)).sum::<f64>();
    let of = |(at, value): (usize, &f64)| {
        let squares: f64 = parts.iter().map(|one| (one[at] - all[at]).powi(2)).sum();
        let uncertainty = value * (squares * (GROUPS - 1) as f64 / GROUPS as f64).sqrt();
        (weight(of_runs, at) >= weight(of_usual, at)).then_some(uncertainty)
    };
    values.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fit_points, points::TWO_BY_TWO};
    use evb_core::Span;
    use std::path::Path;

    fn machine() -> Machine {
        Machine { cores: 2, cache: 1 << 21, interruptions: None }
    }

    /// The rates of the points of a machine that has these costs exactly.
    fn runs(costs: &Costs, every: usize) -> Vec<(FitPoint, Vec<f64>)> {
        let points = fit_points("in-process", Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
        let points =
            points.into_iter().enumerate().filter(|(at, point)| at % every == 0 || point.name.contains("slots"));
        points
            .map(|(_, point)| {
                let measured = Measured { point: &point, real_hz: 1.0, spread: 0.0 };
                let rates = simulated_rates(&[measured], std::slice::from_ref(costs));
                let rates = rates.unwrap_or_else(|error| panic!("{error}")).remove(0);
                (point, rates)
            })
            .collect()
    }

    #[test]
    fn the_costs_of_a_simulated_machine_are_found_again() {
        let kind = Kind { machine: machine(), processes: false };
        let mut costs = kind.usual();
        // A machine whose bytes cost three times as much, and whose blocks half.
        for (item, value) in [("readout.byte", 0.3), ("readout.block", 140.0)] {
            costs.set(item, value);
        }
        let fit = Fit::new("in-process", machine(), 1e5, &runs(&costs, 3)).unwrap_or_else(|error| panic!("{error}"));
        assert!(fit.error_percent() < 5.0, "{} %: {:#?}", fit.error_percent(), fit.residuals);
        assert!((0.27..0.33).contains(&fit.costs.parameter("readout.byte")), "{:?}", fit.costs);
        assert!((110.0..180.0).contains(&fit.costs.parameter("readout.block")), "{:?}", fit.costs);
    }

    #[test]
    fn the_file_of_a_fit_is_a_network() {
        let often = Interruption { every: Span::from_millis(3), length: Span::from_micros(26) };
        let machine = Machine { interruptions: Some(vec![often]), ..machine() };
        let kind = Kind { machine: machine.clone(), processes: false };
        let fit =
            Fit::new("in-process", machine, 1e5, &runs(&kind.usual(), 5)).unwrap_or_else(|error| panic!("{error}"));
        let experiment = evb_experiment::Experiment::parse(
            &format!("{TWO_BY_TWO}{}", fit.file()),
            "fit.toml",
            &["trigger.events=1".into()],
        );
        let experiment = experiment.unwrap_or_else(|error| panic!("{error:#?}\n{}", fit.file()));
        let found = experiment.plans()[0].network.cpu.clone().unwrap_or_else(|| panic!("no processors"));
        let rounded = |error: f64| (error * 10.0).round() / 10.0;
        let expected = fit.plan().fit.map(|fit| rounded(fit.error_percent));
        assert_eq!(found.fit.map(|fit| rounded(fit.error_percent)), expected);
        assert_eq!(CpuPlan { fit: None, ..found }, CpuPlan { fit: None, ..fit.plan() });
        let comment = |item: &str| {
            let file = fit.file();
            let line = file.lines().find(|line| line.starts_with(item)).and_then(|line| line.split_once("# "));
            line.map(|(_, comment)| comment.to_owned()).unwrap_or_default()
        };
        // Workers that always have work never sleep.
        assert_eq!(comment("wake.delay"), "assumed: the runs hardly depend on it");
        assert!(comment("readout.byte").starts_with("+- "), "{}", fit.file());
        assert_eq!(comment("interruptions"), "measured on cores without other work");
    }

    #[test]
    fn interruptions_that_are_not_known_are_not_none() {
        let lines = [None, Some(&[][..])].map(interruptions);
        assert_eq!(lines[0], "# interruptions are not known: no thread could be bound to each of the cores");
        assert_eq!(lines[1], "interruptions = [] # measured on cores without other work");
    }
}
