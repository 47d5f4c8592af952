//! Comparison of the carried rate with the offered rate.

use super::{
    backlog::Backlog,
    batches::MARGIN,
    series::Series,
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
    /// Number of items at the beginning of the series that arrived in an earlier run.
    pub switched: u64,
    /// Longest time from arrival to end, in seconds; 0 if it was not measured.
    pub longest_s: f64,
    /// The requested rate, per second.
    pub rate_hz: f64,
    /// The part of the load that may be lost.
    pub accepted_loss: f64,
}

/// Part of the load that is carried at least if it is good.
const CARRIED: f64 = 0.95;
/// The same by the growth of the times, which is an estimate.
const CARRIED_BY_GROWTH: f64 = 0.96;
/// Times the longest latency must fit into the time in which the load is offered.
const LATENCIES: f64 = 10.0;
/// Times the shortest latency by which latencies grow at most until the first items have ended, if the load is carried: an item
/// takes longer among others than alone, but not many times as long.
const FILLING: f64 = 4.0;

impl Offer {
    /// A finding if less was carried than allowed: more than the accepted part was turned away, or more than this part of the
    /// arrivals was left behind, in the steady window beyond its interval and beyond one per cent, or while the load was offered
    /// beyond five per cent. Another one if the time was too short to tell.
    pub fn judge(&self, series: &Series, steady: &Steady) -> Option<Finding> {
        let turned_away = self.turned_away as f64 > self.accepted_loss * self.came as f64;
        if turned_away || self.is_behind(steady) {
            return Some(self.in_window(steady));
        }
        if self.keeps_up(steady) {
            return None;
        }
        self.over_all(&Backlog::of(series, self.switched, self.accepted())?)
    }

    /// The part of the arrivals that was not turned away.
    fn accepted(&self) -> f64 {
        if self.came > 0 { 1.0 - self.turned_away as f64 / self.came as f64 } else { 1.0 }
    }

    fn is_behind(&self, steady: &Steady) -> bool {
        steady.settled.is_some_and(|settled| {
            let accepted = self.accepted_loss * settled.offered_hz;
            let mean = f64::midpoint(settled.behind_hz.low, settled.behind_hz.high);
            settled.behind_hz.low > accepted && mean > accepted + MARGIN * settled.offered_hz
        })
    }

    /// True if the whole interval of a steady window shows that the load was carried.
    fn keeps_up(&self, steady: &Steady) -> bool {
        let most = 1.0 - CARRIED * (1.0 - self.accepted_loss);
        steady.settled.is_some_and(|settled| settled.behind_hz.high <= most * settled.offered_hz)
    }

    /// The verdict without a window, or of one with a wide interval. What was done when the last item had been offered is
    /// carried. The others may have been under way, or they piled up: then each took longer than the one before, and in the
    /// end fewer were done than came. Until the first items have ended any system fills, and its times grow.
    fn over_all(&self, backlog: &Backlog) -> Option<Finding> {
        let (accepted, wanted) = (self.accepted(), 1.0 - self.accepted_loss);
        let is_done = accepted * (1.0 - backlog.left) >= CARRIED * wanted;
        let is_soon_over = backlog.drain_s <= (1.0 - CARRIED) * backlog.offered_s;
        if is_done && (is_soon_over || self.accepted_loss > 0.0) {
            return None;
        }
        let is_short = LATENCIES * self.longest_s > backlog.offered_s;
        let is_piling_up = backlog.late_rate < CARRIED && backlog.growth_of_shortest() > FILLING;
        let carried = backlog.growth.map(|_| accepted / (1.0 + backlog.excess()));
        match carried {
            Some(carried) if carried >= CARRIED_BY_GROWTH * wanted => is_short.then(|| self.undecided(backlog)),
            Some(carried) if !is_short || is_piling_up => Some(self.piled_up(carried, backlog)),
            _ => Some(self.undecided(backlog)),
        }
    }

    fn in_window(&self, steady: &Steady) -> Finding {
        let message = match steady.settled {
            Some(Settled { carried_hz: (carried, Bounds { low, high }), .. }) => {
                let [carried, low, high] = [carried, low, high].map(hertz);
                format!("{carried} ({low} to {high}) of {} offered were carried", hertz(self.rate_hz))
            }
            None => format!("{} were offered", hertz(self.rate_hz)),
        };
        self.not_kept(message)
    }

    fn piled_up(&self, carried: f64, backlog: &Backlog) -> Finding {
        let rest = match backlog.drain_s {
            drain if drain > 0.0 => format!(", and the others took another {}", time(drain)),
            _ => String::new(),
        };
        self.not_kept(format!(
            "about {} of {} offered were carried: after {} {:.0} % of the {} were done{rest}",
            hertz(carried * self.rate_hz),
            hertz(self.rate_hz),
            time(backlog.offered_s),
            done_percent(backlog),
            self.what,
        ))
    }

    fn not_kept(&self, mut message: String) -> Finding {
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

    fn undecided(&self, backlog: &Backlog) -> Finding {
        let message = format!(
            "{} were offered for {}, which is too short to tell: {:.0} % of the {} were done then, and the longest took {}",
            hertz(self.rate_hz),
            time(backlog.offered_s),
            done_percent(backlog),
            self.what,
            time(self.longest_s),
        );
        let longer = time((LATENCIES * self.longest_s).max(2.0 * backlog.offered_s));
        Finding::new(FindingKind::RateNotJudged, self.key, message)
            .hint(format!("a run of more than {longer} can tell"))
    }
}

fn done_percent(backlog: &Backlog) -> f64 {
    (1.0 - backlog.left).clamp(0.0, 1.0) * 100.0
}

/// A rate with three significant digits.
fn hertz(rate: f64) -> String {
    in_units(rate, &[(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")])
}

/// A time with three significant digits.
fn time(seconds: f64) -> String {
    in_units(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")])
}

/// A value in the largest unit of which it has one; the last unit is for all below.
fn in_units(value: f64, units: &[(f64, &str)]) -> String {
    let last = units.len() - 1;
    let (scale, unit) = *units[..last].iter().find(|(scale, _)| value >= *scale).unwrap_or(&units[last]);
    let value = value / scale;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{super::backlog::tests::queue, *};

    /// The kind of the finding about items that come every 10 us, with the longest latency in microseconds.
    fn judged(items: u64, service: f64, delay: f64, longest: f64, accepted_loss: f64) -> Option<FindingKind> {
        let series = queue(items, 10.0, service, delay);
        let steady = Steady::find(&series, None, series.ended_at());
        let offer = Offer {
            key: "trigger.rate",
            what: "triggers",
            came: items,
            turned_away: 0,
            switched: 0,
            longest_s: longest * 1e-6,
            rate_hz: 1e5,
            accepted_loss,
        };
        offer.judge(&series, &steady).map(|finding| finding.kind)
    }

    #[test]
    fn a_short_run_beyond_reach_is_not_good() {
        for items in [10, 50, 100] {
            let longest = items as f64 * 20.0;
            assert_eq!(judged(items, 30.0, 0.0, longest, 0.0), Some(FindingKind::RateNotKept), "{items}");
            assert_eq!(judged(items, 30.0, 0.0, longest, 0.5), Some(FindingKind::RateNotKept), "{items}");
            assert_ne!(judged(items, 30.0, 0.0, longest, 0.7), Some(FindingKind::RateNotKept), "{items}");
        }
        // 93 % are carried, and the longest latency fits into the time ten times.
        assert_eq!(judged(100, 10.7, 0.0, 80.0, 0.0), Some(FindingKind::RateNotKept));
    }

    #[test]
    fn a_run_of_which_nothing_has_ended_cannot_tell() {
        // Each item takes longer than the one before, by a fifth of its distance, until the system is full.
        for (items, delay) in [(50, 1000.0), (100, 1000.0), (100, 2000.0)] {
            let longest = delay + items as f64 * 12.0;
            assert_eq!(judged(items, 12.0, delay, longest, 0.0), Some(FindingKind::RateNotJudged), "{items}");
        }
        // What takes many times as long as the first ones is not under way, but waits.
        assert_eq!(judged(100, 100.0, 1000.0, 11_000.0, 0.0), Some(FindingKind::RateNotKept));
    }

    #[test]
    fn items_that_take_long_are_judged_once_the_time_is_long_enough() {
        assert_eq!(judged(50, 1.0, 40.0, 41.0, 0.0), None, "8 % are under way at the end, as at any time");
        assert_eq!(judged(50, 1.0, 400.0, 401.0, 0.0), Some(FindingKind::RateNotJudged));
        assert_eq!(judged(500, 1.0, 400.0, 401.0, 0.0), None);
    }
}
