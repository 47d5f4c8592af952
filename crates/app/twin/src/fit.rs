//! The fit of the costs of a machine to runs on it.

use crate::{
    FitPoint, TwinError,
    costs::{Costs, Kind},
    least_squares::{Equation, solve},
};
use evb_core::{ByteCount, Frequency, Span};
use evb_experiment::{CpuFit, CpuPlan, Plan};
use evb_record::Record;
use std::{fmt::Write as _, num::NonZeroUsize};

/// Rounds of a fit. The work of a run depends a little on the costs: each round counts it with those of the round before.
const ROUNDS: usize = 5;
/// Where a delay comes from.
const ASSUMED: &str = "assumed";
const BY_ONE_EVENT: &str = "by the run with one event at a time";
/// The load of a worker, or of all cores, from which on costs decide about the rate.
const SATURATED: f64 = 0.85;
/// Longest delay that is looked for.
const LONGEST_DELAY: Span = Span::from_micros(200);
/// Halvings of the interval of a delay: to 0.1 us.
const BISECTIONS: usize = 11;
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
    /// What each cost may be off by, in nanoseconds: its change when a tenth of the runs is left out, scaled to all of them
    /// (the jackknife by groups).
    uncertainties: Vec<f64>,
    /// The runs.
    pub residuals: Vec<Residual>,
}

/// A run with its median rate and what the workers spent on an event.
struct Measured<'a> {
    point: &'a FitPoint,
    real_hz: f64,
    spread: f64,
}

impl Fit {
    /// Fits the costs to event rates of runs: of each point several, in hertz. `cores` is the number of cores that the runs had,
    /// `cache` the cache of one of them in bytes, and `reference_hz` the rate of [`reference`](crate::reference).
    ///
    /// # Errors
    /// A run built no events, or cannot be simulated.
    pub fn new(
        transport: &str,
        (cores, cache): (u16, u64),
        reference_hz: f64,
        runs: &[(FitPoint, Vec<f64>)],
    ) -> Result<Self, TwinError> {
        let measured = runs.iter().map(|(point, rates)| Measured::new(point, rates)).collect::<Result<Vec<_>, _>>()?;
        let processes = measured.first().is_some_and(|run| !run.point.plan().0.transport.info().is_one_process());
        let kind = Kind { cores, processes, cache: ByteCount(cache) };
        let mut costs = kind.usual();
        let mut equations = Vec::new();
        for _ in 0..ROUNDS {
            let all = measured.iter().map(|run| run.equation(&costs)).collect::<Result<Vec<_>, _>>()?;
            equations = all.into_iter().flatten().collect();
            costs.values = solved(kind, &equations);
            if let Some(run) = measured.iter().find(|run| run.point.shows_delay) {
                costs.delay = run.delay(&costs)?;
            }
        }
        let uncertainties = uncertainties(kind, &equations, &costs.values);
        let residuals = measured.iter().map(|run| run.residual(&costs)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { transport: transport.into(), reference_hz, costs, uncertainties, residuals })
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
        100.0 * median_and_spread(&spreads).0
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
        let Costs { kind, .. } = self.costs;
        let _infallible = write!(
            text,
            "\n[network]\npreset = \"ideal\"\nfitted_to = {:?}\n\n[network.cpu]\ncores = {}\ncomputers = \"one\"\nmessages = \"memory\"\n\
             nodes = {nodes:?}\n{}crossing.delay = \"{}\" # {}\ncache.size = \"{} B\" # of a core\n\
             context_switch = \"{}\" # {}\nwake.delay = \"{}\" # assumed\nslice = \"{}\" # assumed\n\
             fit = {{ error = {:.1}, reference = \"{:.3} Hz\" }}\n",
            self.transport,
            kind.cores,
            self.costs.lines(&self.uncertainties),
            plan.crossing.delay,
            if kind.processes { ASSUMED } else { BY_ONE_EVENT },
            kind.cache.0,
            plan.context_switch,
            if kind.processes { BY_ONE_EVENT } else { ASSUMED },
            plan.wake.delay,
            plan.slice,
            self.error_percent(),
            self.reference_hz,
        );
        text
    }
}

impl<'a> Measured<'a> {
    fn new(point: &'a FitPoint, rates: &[f64]) -> Result<Self, TwinError> {
        let (real_hz, spread) = median_and_spread(rates);
        if real_hz > 0.0 { Ok(Self { point, real_hz, spread }) } else { Err(TwinError::NoEvents(point.name.clone())) }
    }

    /// The costs of an event make up the time of the workers for it, as a part of the real one. `None` if no worker is busy all
    /// of the time: then delays decide, and not the costs.
    fn equation(&self, costs: &Costs) -> Result<Option<Equation>, TwinError> {
        let record = simulate(self.point.simulated(), costs)?;
        let simulation = record.simulation.as_ref();
        let cpu = simulation.and_then(|simulation| simulation.cpu.clone()).unwrap_or_default();
        let events = record.events.built.max(1) as f64;
        let loads: f64 = cpu.workers.iter().map(|worker| worker.load).sum();
        let most = cpu.workers.iter().map(|worker| worker.load).fold(loads / f64::from(costs.kind.cores), f64::max);
        if most < SATURATED {
            return Ok(None);
        }
        let busy = loads.min(f64::from(costs.kind.cores)) * 1e9 / self.real_hz;
        let factors = costs.kind.pieces(&cpu.work).into_iter().map(|pieces| pieces / events / busy);
        Ok(Some(Equation { factors: factors.collect(), sum: 1.0 }))
    }

    /// The delay with which the simulated rate is the real one, by bisection.
    fn delay(&self, costs: &Costs) -> Result<Span, TwinError> {
        let (mut low, mut high) = (Span::ZERO, LONGEST_DELAY);
        for _ in 0..BISECTIONS {
            let delay = Span(low.0.midpoint(high.0));
            let costs = Costs { delay, ..costs.clone() };
            let is_too_fast = simulate(self.point.simulated(), &costs)?.event_rate_hz > self.real_hz;
            if is_too_fast { low = delay } else { high = delay }
        }
        Ok(low)
    }

    fn residual(&self, costs: &Costs) -> Result<Residual, TwinError> {
        let simulated_hz = simulate(self.point.simulated(), costs)?.event_rate_hz;
        let Self { real_hz, spread, point } = self;
        Ok(Residual { name: point.name.clone(), real_hz: *real_hz, spread: *spread, simulated_hz })
    }
}

/// The median of some values, and half of the difference of the highest and the lowest as a part of it.
pub(crate) fn median_and_spread(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else { return (0.0, 0.0) };
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
    (median, if median > 0.0 { (high - low) / 2.0 / median } else { 0.0 })
}

fn simulate(plan: &Plan, costs: &Costs) -> Result<Record, TwinError> {
    let mut plan = plan.clone();
    plan.network.cpu = Some(costs.plan());
    Ok(evb::simulate(&plan, NonZeroUsize::MIN, None, &mut |_| true)?)
}

fn solved(kind: Kind, equations: &[Equation]) -> Vec<f64> {
    let usual = kind.usual_equations();
    let variables = usual.len();
    solve(&[equations, &usual].concat(), variables)
}

/// The uncertainty of each cost by leaving out each tenth of the runs in turn.
fn uncertainties(kind: Kind, equations: &[Equation], values: &[f64]) -> Vec<f64> {
    const GROUPS: usize = 10;
    let without = |group: usize| {
        let kept = equations.iter().enumerate().filter(|(at, _)| at % GROUPS != group);
        solved(kind, &kept.map(|(_, equation)| equation.clone()).collect::<Vec<_>>())
    };
    let all: Vec<_> = (0..GROUPS).map(without).collect();
    let of = |(at, value): (usize, &f64)| {
        let squares: f64 = all.iter().map(|one| (one[at] - value).powi(2)).sum();
        (squares * (GROUPS - 1) as f64 / GROUPS as f64).sqrt()
    };
    values.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fit_points, points::TWO_BY_TWO};

    /// The rates of the points of a machine that has these costs exactly.
    fn runs(costs: &Costs, every: usize) -> Vec<(FitPoint, Vec<f64>)> {
        let points = fit_points("in-process").unwrap_or_else(|error| panic!("{error}"));
        let points = points.into_iter().enumerate().filter(|(at, point)| at % every == 0 || point.shows_delay);
        points
            .map(|(_, point)| {
                let record = simulate(point.simulated(), costs).unwrap_or_else(|error| panic!("{error}"));
                (point, vec![record.event_rate_hz])
            })
            .collect()
    }

    #[test]
    fn the_costs_of_a_simulated_machine_are_found_again() {
        let kind = Kind { cores: 2, processes: false, cache: ByteCount(1 << 21) };
        let mut costs = kind.usual();
        // A machine whose delays are longer, whose bytes cost three times as much, and whose blocks half.
        (costs.values[7], costs.values[5], costs.delay) = (0.3, 140.0, Span(400_000));
        let fit = Fit::new("in-process", (2, 1 << 21), 1e5, &runs(&costs, 2)).unwrap_or_else(|error| panic!("{error}"));
        assert!(fit.error_percent() < 5.0, "{} %: {:#?}", fit.error_percent(), fit.residuals);
        let byte = fit.costs.values[7];
        assert!((0.27..0.33).contains(&byte), "{:?}", fit.costs);
        assert!((0.2e6..0.6e6).contains(&(fit.costs.delay.0 as f64)), "{:?}", fit.costs);
    }

    #[test]
    fn the_file_of_a_fit_is_a_network() {
        let kind = Kind { cores: 2, processes: false, cache: ByteCount(1 << 21) };
        let fit = Fit::new("in-process", (2, 1 << 21), 1e5, &runs(&kind.usual(), 5))
            .unwrap_or_else(|error| panic!("{error}"));
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
    }
}
