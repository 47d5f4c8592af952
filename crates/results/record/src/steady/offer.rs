//! Comparison of the carried rate with the offered rate.

use super::{
    batches::MARGIN,
    window::{Settled, Steady},
};
use crate::{Bounds, Finding, FindingKind};

/// The offered load of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// The key of the experiment file that sets the load.
    pub key: &'static str,
    /// The unit of the load: triggers, messages or events.
    pub what: &'static str,
    /// Number of arrivals, accepted or turned away.
    pub came: u64,
    /// Number of arrivals that were turned away.
    pub turned_away: u64,
    /// The requested rate, per second.
    pub rate_hz: f64,
    /// The part of the load that may be lost.
    pub accepted_loss: f64,
}

impl Offer {
    /// A finding if less was carried than allowed: more than the accepted part was turned away, or in the steady window
    /// more than this part of the arrivals was left behind, beyond its interval and beyond one per cent.
    pub fn judge(&self, steady: &Steady) -> Option<Finding> {
        let turned_away = self.turned_away as f64 > self.accepted_loss * self.came as f64;
        (turned_away || self.is_behind(steady)).then(|| self.finding(steady))
    }

    fn is_behind(&self, steady: &Steady) -> bool {
        steady.settled.is_some_and(|settled| {
            let accepted = self.accepted_loss * settled.offered_hz;
            let mean = f64::midpoint(settled.behind_hz.low, settled.behind_hz.high);
            settled.behind_hz.low > accepted && mean > accepted + MARGIN * settled.offered_hz
        })
    }

    fn finding(&self, steady: &Steady) -> Finding {
        let mut message = match steady.settled {
            Some(Settled { carried_hz: (carried, Bounds { low, high }), .. }) => {
                let [carried, low, high] = [carried, low, high].map(hertz);
                format!("{carried} ({low} to {high}) of {} offered were carried", hertz(self.rate_hz))
            }
            None => format!("{} were offered", hertz(self.rate_hz)),
        };
        if self.turned_away > 0 {
            let percent = self.turned_away as f64 / self.came as f64 * 100.0;
            message +=
                &format!("; {} of {} {} were turned away, {percent:.2} %", self.turned_away, self.came, self.what);
        }
        Finding::new(FindingKind::RateNotKept, self.key, message).hint(
            "`where it blocks` of a simulation, or the busy readout units of a run, say what is full; \
             `trigger.accept_loss` says how many per cent may be lost",
        )
    }
}

/// A rate with three significant digits.
fn hertz(rate: f64) -> String {
    let units = [(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| rate >= *scale).unwrap_or((1.0, "Hz"));
    let value = rate / scale;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}
