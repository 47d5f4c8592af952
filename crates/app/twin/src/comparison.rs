//! Runs of a file against its simulation.

use crate::TwinError;
use evb_core::{Frequency, Span};
use evb_experiment::{CpuFit, Plan};
use evb_record::{Agreement, Bounds, Occupancy, Record, RecordKind, Twin, TwinFigure, median, spread};
use std::num::NonZeroUsize;

/// The largest change of the reference run, as a part, at which the machine is still the one of the fit: less than the
/// difference that a comparison is to show.
const SAME_MACHINE: f64 = 0.15;
/// The largest half-width of the real rates, as a part of their median, at which they are one figure.
const STEADY: f64 = 0.2;
/// Simulated time, if it has enough triggers: rates are steady long before.
const SIMULATED: Span = Span::from_millis(200);
/// Fewest triggers that are simulated where they come at a rate.
const FEWEST_TRIGGERS: u64 = 2000;
/// The factor within which figures without a band agree.
const FACTOR: f64 = 2.0;

/// Runs of an experiment, with the event rate of the reference run beside each of them, in hertz.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The records of the runs.
    pub records: Vec<Record>,
    /// The event rates of the reference runs.
    pub reference_hz: Vec<f64>,
}

/// The fit of the machine of a plan, if it is that of the plan's transport.
///
/// # Errors
/// The plan's network has no fitted costs, or those of another transport.
pub(crate) fn fit_of(plan: &Plan) -> Result<CpuFit, TwinError> {
    let fit = plan.network.cpu.as_ref().and_then(|cpu| cpu.fit).ok_or(TwinError::NoCosts)?;
    let asked = plan.transport.info().name;
    match &plan.network.fitted_to {
        Some(fitted) if fitted != asked => {
            Err(TwinError::OtherTransport { fitted: fitted.clone(), asked: asked.to_owned() })
        }
        _ => Ok(fit),
    }
}

/// Simulates a plan on its fitted machine, for 0.2 s of its time, or 2000 triggers at a rate.
///
/// # Errors
/// The plan's network has no fitted costs, or those of another transport, or it cannot be simulated.
pub fn simulate(plan: &Plan) -> Result<Record, TwinError> {
    fit_of(plan)?;
    let mut plan = plan.clone();
    let triggers = |rate: Frequency| Span::from_secs(1).0.saturating_mul(1000) / rate.0.max(1) * FEWEST_TRIGGERS;
    let enough = SIMULATED.max(Span(plan.trigger.rate.map_or(0, triggers)));
    plan.trigger.duration = Some(plan.trigger.duration.map_or(enough, |duration| duration.min(enough)));
    Ok(evb::simulate(&plan, NonZeroUsize::MIN, None, &mut |_| true)?)
}

/// Holds runs of a plan against its simulation.
///
/// # Errors
/// The plan's network has no fitted costs, or those of another transport.
pub fn compare(plan: &Plan, runs: &Runs, simulated: &Record) -> Result<Twin, TwinError> {
    let CpuFit { error_percent, reference } = fit_of(plan)?;
    let figures = figures(runs, simulated, error_percent / 100.0);
    let fitted_reference_hz = hertz(reference);
    let (agreement, explanation) = judge(runs, fitted_reference_hz, &figures[0]);
    let cpu = simulated.simulation.as_ref().and_then(|simulation| simulation.cpu.clone()).unwrap_or_default();
    Ok(Twin {
        kind: RecordKind::Twin,
        experiment: plan.name.clone(),
        sweep: plan.sweep.iter().cloned().collect(),
        seed: plan.run.seed,
        version: simulated.version.clone(),
        transport: plan.transport.info().name.to_owned(),
        turns: runs.records.len() as u64,
        band_percent: error_percent,
        fitted_reference_hz,
        reference_hz: runs.reference_hz.clone(),
        figures,
        simulated_work: cpu.work,
        agreement,
        explanation,
        loads: Vec::new(),
    })
}

/// A frequency in hertz.
pub(crate) fn hertz(frequency: Frequency) -> f64 {
    frequency.0 as f64 * 1e-3
}

/// The event rate first.
pub(crate) fn figures(runs: &Runs, simulated: &Record, band: f64) -> Vec<TwinFigure> {
    let of = |figure: &str, value: &dyn Fn(&Record) -> f64, band: Option<f64>| {
        let real: Vec<_> = runs.records.iter().map(value).collect();
        let (median, spread) = (median(&real), spread(&real));
        let simulated = value(simulated);
        let ratio = if median > 0.0 { simulated / median } else { 0.0 };
        let agrees = match band {
            Some(band) => (ratio - 1.0).abs() <= band + spread,
            None => (1.0 / FACTOR..=FACTOR).contains(&ratio),
        };
        let range = |band: f64| Bounds { low: simulated * (1.0 - band), high: simulated * (1.0 + band) };
        TwinFigure { figure: figure.to_owned(), real, simulated, simulated_range: band.map(range), agrees }
    };
    let always = [
        of("event rate, Hz", &|record| record.event_rate_hz, Some(band)),
        of("throughput, B/s", &|record| record.throughput_bytes_per_s, Some(band)),
        of("latency median, us", &|record| record.latency_us.p50, None),
        of("latency p99, us", &|record| record.latency_us.p99, None),
    ];
    let full =
        OCCUPANCIES.map(|(figure, value)| of(figure, &|record| record.occupancy.as_ref().map_or(0.0, value), None));
    let is_there = |figure: &TwinFigure| figure.simulated > 0.0 || figure.median() > 0.0;
    always.into_iter().chain(full.into_iter().filter(is_there)).collect()
}

/// A figure of how full something is.
type Fullness = (&'static str, fn(&Occupancy) -> f64);

/// How full cores, buffers and builders are. With blocks, an event is a block.
const OCCUPANCIES: [Fullness; 4] = [
    ("cores busy", |occupancy| occupancy.machine_busy.unwrap_or(0.0)),
    ("buffers filled", |occupancy| {
        occupancy.readouts.iter().map(|unit| unit.filled).sum::<f64>() / occupancy.readouts.len().max(1) as f64
    }),
    ("events in building", |occupancy| occupancy.builders.iter().map(|unit| unit.building).sum()),
    ("events to be stored", |occupancy| occupancy.builders.iter().map(|unit| unit.storing).sum()),
];

/// Whether the event rates agree, and why.
fn judge(runs: &Runs, fitted_hz: f64, rate: &TwinFigure) -> (Agreement, String) {
    let (median, spread) = (rate.median(), rate.spread());
    if median == 0.0 {
        return (Agreement::NotComparable, "the runs built no events".into());
    }
    if let Some(message) = moved(&runs.reference_hz, fitted_hz) {
        return (Agreement::NotComparable, message);
    }
    if spread > STEADY {
        let message = format!("the event rate of the runs varied by {:.0} %: make them longer", spread * 100.0);
        return (Agreement::NotComparable, message);
    }
    let off = format!("the simulated event rate is {:+.0} % off", (rate.simulated / median - 1.0) * 100.0);
    match rate.agrees {
        true => (Agreement::Agree, off),
        false if rate.simulated > median => (Agreement::Differ, off + ": the runs spend time that the costs lack"),
        false => (Agreement::Differ, off + ": the costs are too high for these runs"),
    }
}

/// The reason why the machine was not the one of the fit, if so.
pub(crate) fn moved(reference_hz: &[f64], fitted_hz: f64) -> Option<String> {
    let (reference, moved) = (median(reference_hz), spread(reference_hz));
    let change = if fitted_hz > 0.0 { reference / fitted_hz - 1.0 } else { 0.0 };
    if change.abs() <= SAME_MACHINE && moved <= SAME_MACHINE {
        return None;
    }
    let (moved, words) = (moved * 100.0, if change < 0.0 { "less" } else { "more" });
    let change = change.abs() * 100.0;
    Some(format!(
        "the reference run had {change:.0} % {words} than at the fit, and varied by {moved:.0} %: fit again, or compare when \
         nothing else runs"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(real: &[f64], simulated: f64, band: f64) -> TwinFigure {
        let (median, spread) = (median(real), spread(real));
        let agrees = (simulated / median - 1.0).abs() <= band + spread;
        TwinFigure { figure: String::new(), real: real.to_vec(), simulated, simulated_range: None, agrees }
    }

    fn agreement(reference_hz: &[f64], real: &[f64], simulated: f64) -> Agreement {
        let runs = Runs { records: Vec::new(), reference_hz: reference_hz.to_vec() };
        judge(&runs, 100.0, &rate(real, simulated, 0.1)).0
    }

    #[test]
    fn rates_agree_within_the_band_and_the_spread() {
        assert_eq!(agreement(&[100.0], &[98.0, 100.0, 102.0], 111.0), Agreement::Agree);
        assert_eq!(agreement(&[100.0], &[98.0, 100.0, 102.0], 114.0), Agreement::Differ);
        assert_eq!(agreement(&[100.0], &[98.0, 100.0, 102.0], 86.0), Agreement::Differ);
    }

    #[test]
    fn a_machine_that_moved_is_not_comparable_even_where_rates_would_agree() {
        assert_eq!(agreement(&[70.0], &[100.0], 100.0), Agreement::NotComparable);
        assert_eq!(agreement(&[80.0, 100.0, 120.0], &[100.0], 100.0), Agreement::NotComparable);
        assert_eq!(agreement(&[100.0], &[60.0, 100.0, 140.0], 100.0), Agreement::NotComparable);
        assert_eq!(agreement(&[100.0], &[0.0], 100.0), Agreement::NotComparable);
    }
}
