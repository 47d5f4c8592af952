//! Random times of network interfaces and hosts.

use evb_core::{NodeId, Span, Stream, stream};
use evb_fabric::{Jitter, JitterPer, JitterSpread};
use rand_distr::{Distribution as _, Exp1, LogNormal};

/// The random times of one interface or host.
pub(crate) struct JitterTimes {
    random: Stream,
    mean: f64,
    /// Exponential if there is none.
    log_normal: Option<LogNormal<f64>>,
    per: JitterPer,
}

impl JitterTimes {
    /// Times for a host, for one purpose.
    pub(crate) fn new(config: &Jitter, (seed, host, purpose): (u64, usize, u64)) -> Self {
        let mean = config.mean.0 as f64;
        let log_normal = match config.spread {
            JitterSpread::Exponential => None,
            JitterSpread::LogNormal { rms } => LogNormal::from_mean_cv(mean, rms.0 as f64 / mean.max(1.0)).ok(),
        };
        Self { random: stream(seed, NodeId(host as u16), purpose), mean, log_normal, per: config.per }
    }

    /// The time before a packet, which may be the last one of its message.
    #[inline]
    pub(crate) fn before_packet(&mut self, is_last: bool) -> Span {
        if self.per == JitterPer::Packet || is_last { self.next() } else { Span::ZERO }
    }

    /// The next time.
    pub(crate) fn next(&mut self) -> Span {
        let time = match &self.log_normal {
            Some(log_normal) => log_normal.sample(&mut self.random),
            None => {
                let one: f64 = Exp1.sample(&mut self.random);
                one * self.mean
            }
        };
        Span(time as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and rms of many times in nanoseconds.
    fn drawn(mean: u64, spread: JitterSpread) -> (f64, f64) {
        let config = Jitter { mean: Span(mean * 1000), spread, per: JitterPer::Packet };
        let mut times = JitterTimes::new(&config, (7, 3, 1));
        let values: Vec<f64> = (0..100_000).map(|_| times.before_packet(false).as_secs_f64() * 1e9).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, square.sqrt())
    }

    #[test]
    fn times_have_the_mean_and_rms_that_are_asked_for() {
        let rms = |rms: u64| JitterSpread::LogNormal { rms: Span(rms * 1000) };
        for (mean, spread, expected) in
            [(1200, JitterSpread::Exponential, 1200.0), (500, rms(1000), 1000.0), (800, rms(80), 80.0)]
        {
            let (average, deviation) = drawn(mean, spread);
            assert!((average / mean as f64 - 1.0).abs() < 0.02, "{average} for {mean}");
            assert!((deviation / expected - 1.0).abs() < 0.06, "{deviation} for {expected}");
        }
    }

    #[test]
    fn a_time_for_each_message_is_drawn_with_its_last_packet() {
        let config = Jitter { mean: Span(5000), spread: JitterSpread::Exponential, per: JitterPer::Message };
        let mut times = JitterTimes::new(&config, (7, 3, 1));
        assert_eq!(times.before_packet(false), Span::ZERO);
        assert!((0..20).any(|_| times.before_packet(true) > Span::ZERO));
    }
}
