//! A network preset from measurements: what a simulation needs to behave like the layer that was measured.
//!
//! The model is the simulator's: a message of n bytes is in its sender's processor for a time, then on two links of one
//! delay and one rate, cut through, then in its receiver's processor for a time. Half a ping-pong is the sum of all; a stream
//! goes at the pace of the slowest part. So a straight line through the times between the messages of a stream gives the
//! time of a processor (at no bytes) and the rate (its slope), and a line through the halves of ping-pongs the sum, of which the
//! delay is what remains.

use crate::cell::Benchmark as Pattern;
use evb_record::Benchmark;
use std::fmt::Write as _;

/// Sizes that a fit needs at least.
const FEWEST_SIZES: usize = 3;

/// The parameters of a network with one switch, from the measurements of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkFit {
    /// Time of a processor for a message, at its sender and again at its receiver, in nanoseconds.
    pub host_ns: f64,
    /// Delay of each of the two links in nanoseconds.
    pub delay_ns: f64,
    /// Rate of a link in bytes per second.
    pub bytes_per_s: f64,
    /// Largest part by which the lines miss a measured time.
    pub worst: f64,
}

/// A straight line: time in nanoseconds over size in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// At no bytes: the fixed overhead, in nanoseconds.
    pub fixed_ns: f64,
    /// Nanoseconds for each byte.
    pub ns_per_byte: f64,
}

impl Line {
    /// The line through these points (bytes, nanoseconds) with the least squares of the relative errors, so that small times
    /// count as much as large ones; none for less than two sizes.
    #[must_use]
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x, y) / (y * y)).sum::<f64>();
        let (w, x, y) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
        let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
        let determinant = w * xx - x * x;
        if points.len() < 2 || determinant <= f64::EPSILON * w * xx {
            return None;
        }
        let ns_per_byte = (w * xy - x * y) / determinant;
        Some(Self { fixed_ns: (y - ns_per_byte * x) / w, ns_per_byte })
    }

    /// The time of so many bytes in nanoseconds.
    #[must_use]
    pub fn at(self, bytes: f64) -> f64 {
        self.fixed_ns + self.ns_per_byte * bytes
    }

    fn worst(self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|&(x, y)| (self.at(x) / y - 1.0).abs()).fold(0.0, f64::max)
    }
}

/// Fits a network to the ping-pongs and one-way streams of a layer.
///
/// # Errors
/// What is missing: each of the two is needed with three sizes.
pub fn fit(transport: &str, rows: &[Benchmark]) -> Result<NetworkFit, String> {
    let of = |pattern: Pattern| {
        let rows = rows.iter().filter(move |row| row.transport == transport && row.pattern == pattern.name());
        rows.filter(|row| row.rate_hz.is_none())
    };
    let halves: Vec<_> =
        of(Pattern::PingPong).filter_map(|row| Some((row.size_bytes as f64, row.half_round_trip_ns?.p50))).collect();
    let gaps: Vec<_> = of(Pattern::OneWay)
        .filter(|row| row.messages_per_s > 0.0)
        .map(|row| (row.size_bytes as f64, 1e9 / row.messages_per_s))
        .collect();
    let (half, gap) = (line("ping-pong", &halves)?, line("one-way", &gaps)?);
    let host_ns = gap.fixed_ns.clamp(0.0, half.fixed_ns.max(0.0) / 2.0);
    // A stream whose time does not grow with its size is bound by something else: then the ping-pong tells more.
    let slope = if gap.ns_per_byte > 0.0 { gap.ns_per_byte } else { half.ns_per_byte };
    if slope <= 0.0 {
        return Err("the times do not grow with the size: measure larger messages, with --sweep".into());
    }
    Ok(NetworkFit {
        host_ns,
        delay_ns: ((half.fixed_ns - 2.0 * host_ns) / 2.0).max(0.0),
        bytes_per_s: 1e9 / slope,
        worst: half.worst(&halves).max(gap.worst(&gaps)),
    })
}

fn line(pattern: &str, points: &[(f64, f64)]) -> Result<Line, String> {
    let too_few = || format!("{} sizes of {pattern} are too few to fit: measure {FEWEST_SIZES} or more", points.len());
    if points.len() < FEWEST_SIZES {
        return Err(too_few());
    }
    Line::through(points).ok_or_else(too_few)
}

impl NetworkFit {
    /// The preset as a file: the `[network]` table of an experiment, for `evb simulate --network`.
    #[must_use]
    pub fn preset(&self, transport: &str) -> String {
        let mut text = String::new();
        let mut line = |content: &str| _ = writeln!(text, "{content}");
        line(&format!(
            "# The message layer {transport}, as measured by evb {}. The lines of the fit",
            evb_node::VERSION
        ));
        line(&format!("# miss a measured time by {:.0} % at most.", self.worst * 100.0));
        line("[network]");
        line("preset = \"ideal\"                  # one switch that adds nothing of its own");
        line(&format!(
            "link.rate = \"{:.3} MB/s\"         # one-way: slope of time over size",
            self.bytes_per_s * 1e-6
        ));
        line(&format!(
            "link.delay = \"{:.1} ns\"           # ping-pong: what the processors leave, for each of two links",
            self.delay_ns
        ));
        line("nic.packet = \"64 KiB\"              # messages are not cut");
        line("flow.buffer = \"1 MiB\"              # 16 packets");
        line(&format!("host.send = \"{:.1} ns\"            # one-way: time of a message without bytes", self.host_ns));
        line(&format!("host.receive = \"{:.1} ns\"         # as above", self.host_ns));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again() {
        let points = [8.0, 64.0, 1024.0, 4096.0].map(|size| (size, 120.0 + 0.25 * size));
        let line = Line::through(&points).unwrap();
        assert!((line.fixed_ns - 120.0).abs() < 1e-9 && (line.ns_per_byte - 0.25).abs() < 1e-12);
        assert!(line.worst(&points) < 1e-12);
        assert_eq!(Line::through(&points[..1]), None);
        assert_eq!(Line::through(&[(8.0, 1.0), (8.0, 2.0)]), None, "one size is no line");
    }
}
