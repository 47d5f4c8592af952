//! A network preset from measurements: the parameters with which a simulation behaves like the measured layer.
//!
//! The model is that of the simulator. A message of n bytes takes some time in its sender's processor, then uses two
//! links of one delay and one rate, cut through, then takes some time in its receiver's processor. Half a ping-pong is
//! the sum of all; a stream goes at the pace of the slowest part. So a straight line through the times between the
//! messages of a stream has the time of a processor (at no bytes) and the rate (its slope). A line through the halves
//! of ping-pongs gives the sum; the delay is the rest.

use crate::{benchmark::Benchmark as Pattern, line};
use evb_record::{Benchmark, median};
use std::fmt;

/// The parameters of a network with one switch, from the measurements of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkFit {
    /// Time of a processor for a message, at its sender and again at its receiver, in nanoseconds.
    pub host_ns: f64,
    /// Delay of each of the two links in nanoseconds.
    pub delay_ns: f64,
    /// Rate of a link in bytes per second.
    pub bytes_per_s: f64,
}

/// Too few measurements to fit a network to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sizes} sizes of {pattern} do not form a rising line: measure three or more, and larger ones, with --sweep")]
pub struct FitError {
    /// The pattern that lacks sizes.
    pub pattern: &'static str,
    /// Number of its sizes.
    pub sizes: usize,
}

/// Fits a network to the ping-pongs and one-way streams of a layer.
///
/// # Errors
/// The missing measurements: each of the two patterns is needed with three sizes.
pub fn fit_network(transport: &str, rows: &[Benchmark]) -> Result<NetworkFit, FitError> {
    let of = |pattern: Pattern| {
        let rows = rows.iter().filter(move |row| row.transport == transport && row.pattern == pattern.name());
        rows.filter(|row| row.settings.rate_hz.is_none())
    };
    let halves: Vec<_> = of(Pattern::PingPong)
        .filter_map(|row| Some((row.settings.size_bytes as f64, row.half_round_trip_ns?.p50)))
        .collect();
    let gaps: Vec<_> = of(Pattern::OneWay)
        .filter(|row| row.messages_per_s > 0.0)
        .map(|row| (row.settings.size_bytes as f64, 1e9 / row.messages_per_s))
        .collect();
    let half = line::fit(&halves).ok_or(FitError { pattern: "ping-pong", sizes: halves.len() })?;
    let gap = line::fit(&gaps).ok_or(FitError { pattern: "one-way", sizes: gaps.len() })?;
    let host_ns = gap.overhead.clamp(0.0, half.overhead.max(0.0) / 2.0);
    Ok(NetworkFit { host_ns, delay_ns: ((half.overhead - 2.0 * host_ns) / 2.0).max(0.0), bytes_per_s: 1e9 / gap.slope })
}

impl NetworkFit {
    /// The `[network]` table of an experiment, for `evb simulate --network`.
    #[must_use]
    pub fn table(&self, transport: &str) -> String {
        format!(
            "[network]\n\
             preset = \"ideal\"                  # one switch that adds no delay\n\
             fitted_to = {transport:?}\n\
             link.rate = \"{:.3} MB/s\"         # one-way: slope of time over size\n\
             link.delay = \"{:.1} ns\"           # ping-pong: what the processors leave, for each of two links\n\
             nic.packet = \"64 KiB\"              # messages are not cut\n\
             flow.buffer = \"1 MiB\"              # 16 packets\n\
             host.send = \"{host:.1} ns\"            # one-way: time of a message without bytes\n\
             host.receive = \"{host:.1} ns\"         # as above\n",
            self.bytes_per_s * 1e-6,
            self.delay_ns,
            host = self.host_ns
        )
    }

    /// The table as a file with its origin and its errors.
    #[must_use]
    pub fn file(&self, transport: &str, errors: &FitErrors) -> String {
        let version = evb_node::VERSION;
        let table = self.table(transport);
        format!(
            "# The message layer {transport}, as measured by evb {version}.\n# {errors}.\n# {NOT_MODELLED}.\n{table}"
        )
    }
}

/// The effects that a fitted network leaves out, as text.
pub const NOT_MODELLED: &str = "Not in it: generating, checking and storing events, and nodes that share a processor";

/// Errors of the simulated times of a fitted network against the measured ones.
#[derive(Clone, Debug, PartialEq)]
pub struct FitErrors {
    /// Median error, as a part of the measured time.
    pub typical: f64,
    /// The largest error with its sign: below zero, the simulation is too fast.
    pub worst: f64,
    /// The measurement with the largest error.
    pub worst_at: String,
    /// Number of times.
    pub count: usize,
}

impl FitErrors {
    /// Compares simulated with measured times: half of the round trips, and the times between two messages of a stream.
    /// `None` if no measurement was simulated.
    #[must_use]
    pub fn of(transport: &str, measured: &[Benchmark], simulated: &[Benchmark]) -> Option<Self> {
        let measured = measured.iter().filter(|row| row.transport == transport && row.settings.rate_hz.is_none());
        let is_same = |one: &Benchmark, other: &Benchmark| {
            (&one.pattern, one.settings.size_bytes, one.settings.nodes)
                == (&other.pattern, other.settings.size_bytes, other.settings.nodes)
        };
        let miss = |row: &Benchmark| {
            let other = simulated.iter().find(|other| is_same(row, other))?;
            Some((time(other) / time(row) - 1.0, format!("{}, {} B", row.pattern, row.settings.size_bytes)))
        };
        let errors: Vec<_> = measured.filter_map(miss).collect();
        let sizes: Vec<_> = errors.iter().map(|miss| miss.0.abs()).collect();
        let (typical, count) = (median(&sizes), errors.len());
        let (worst, worst_at) = errors.into_iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()))?;
        Some(Self { typical, worst, worst_at, count })
    }
}

impl fmt::Display for FitErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { typical, worst, worst_at, count } = self;
        let [typical, worst] = [typical, worst].map(|part| part * 100.0);
        write!(
            f,
            "Simulated, the {count} times measured for it are off by {typical:.0} % typically, {worst:+.0} % at worst ({worst_at})"
        )
    }
}

/// The time that a fit uses: half of a round trip, or the time between two messages.
fn time(row: &Benchmark) -> f64 {
    row.half_round_trip_ns.map_or(1e9 / row.messages_per_s, |times| times.p50)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::tests::row;

    /// Ping-pongs of three sizes, with these halves in microseconds.
    fn rows(transport: &str, halves: [f64; 3]) -> Vec<Benchmark> {
        let row = |(size, half): (u64, f64)| {
            let row = row(Pattern::PingPong, 2, size, Some(2.0 * half), 0.0);
            Benchmark { transport: transport.into(), ..row }
        };
        [8, 64, 256].into_iter().zip(halves).map(row).collect()
    }

    #[test]
    fn the_worst_miss_has_its_sign_and_its_place() {
        let measured = rows("shm", [100.0, 200.0, 1000.0]);
        let errors = FitErrors::of("shm", &measured, &rows("sim:shm", [110.0, 200.0, 430.0])).unwrap();
        assert_eq!((errors.count, errors.worst_at.as_str()), (3, "ping-pong, 256 B"));
        assert!((errors.typical - 0.1).abs() < 1e-12 && (errors.worst + 0.57).abs() < 1e-12, "{errors:?}");
        assert!(errors.to_string().ends_with("off by 10 % typically, -57 % at worst (ping-pong, 256 B)"), "{errors}");
        assert_eq!(FitErrors::of("tcp", &measured, &measured), None, "of another layer nothing was measured");
    }
}
