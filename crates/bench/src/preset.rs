//! A network preset from measurements: what a simulation needs to behave like the layer that was measured.
//!
//! The model is the simulator's: a message of n bytes is in its sender's processor for a time, then on two links of one
//! delay and one rate, cut through, then in its receiver's processor for a time. Half a ping-pong is the sum of all; a stream
//! goes at the pace of the slowest part. So a straight line through the times between the messages of a stream gives the
//! time of a processor (at no bytes) and the rate (its slope), and a line through the halves of ping-pongs the sum, of which the
//! delay is what remains.

use crate::{cell::Benchmark as Pattern, line};
use evb_record::Benchmark;
use std::fmt::Write as _;

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

/// Fits a network to the ping-pongs and one-way streams of a layer.
///
/// # Errors
/// What is missing: each of the two is needed with three sizes.
pub fn fit_network(transport: &str, rows: &[Benchmark]) -> Result<NetworkFit, String> {
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
    let half = line::fit(&halves).ok_or_else(|| missing("ping-pong", halves.len()))?;
    let gap = line::fit(&gaps).ok_or_else(|| missing("one-way", gaps.len()))?;
    let host_ns = gap.overhead.clamp(0.0, half.overhead.max(0.0) / 2.0);
    Ok(NetworkFit {
        host_ns,
        delay_ns: ((half.overhead - 2.0 * host_ns) / 2.0).max(0.0),
        bytes_per_s: 1e9 / gap.slope,
        worst: half.error.max(gap.error),
    })
}

fn missing(pattern: &str, sizes: usize) -> String {
    format!("{sizes} sizes of {pattern} give no rising line: measure three or more, and larger ones, with --sweep")
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
