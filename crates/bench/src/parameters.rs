//! The parameters of ATLAS DAQ note 77 (section 5.1), derived from the rows of a suite as the note defines them.

use crate::{
    cell::Benchmark as Pattern,
    suite::{NOTE_DATA_BYTES, NOTE_FARM_NODES},
};
use evb_record::{Benchmark, Parameters};

/// The parameters of one transport; what its rows do not tell is left out.
#[must_use]
pub fn parameters(transport: &str, rows: &[Benchmark]) -> Parameters {
    let rows = Rows(rows.iter().filter(|row| row.transport == transport && row.rate_hz.is_none()).collect());
    Parameters {
        transport: transport.into(),
        latency_us: rows.smallest(Pattern::PingPong).and_then(|row| Some(row.half_round_trip_ns?.p50 * 1e-3)),
        two_way_us: rows.smallest(Pattern::TwoWay).and_then(|row| Some(row.cycle_ns?.p50 * 1e-3)),
        overhead_us: rows.smallest(Pattern::Pairs).map(|row| 1e6 / per_pair(row)),
        bandwidth_mb_per_s: rows
            .find(Pattern::Pairs, |row| row.size_bytes == NOTE_DATA_BYTES as u64)
            .map(|row| per_pair(row) * row.size_bytes as f64 * 1e-6),
        broadcast_quality: rows.broadcast_quality(),
        funnel_us: rows.farm(Pattern::Funnel, 0.0),
        push_farm_us: rows.farm(Pattern::PushFarm, 0.0),
        pull_farm_us: rows.farm(Pattern::PullFarm, 0.0),
        overlap_percent: rows.overlap(),
        half_peak_bytes: rows.half_peak(),
        peak_rate_m_per_s: rows.streams().map(|row| per_pair(row) * 1e-6).reduce(f64::max),
    }
}

/// Messages per second of each pair of nodes.
fn per_pair(row: &Benchmark) -> f64 {
    row.messages_per_s / f64::from(row.nodes / 2).max(1.0)
}

/// Mean time of a cycle: the inverse of its frequency.
fn cycle_us(row: &Benchmark) -> Option<f64> {
    Some(row.cycle_ns?.mean * 1e-3)
}

/// The rows of one transport.
struct Rows<'a>(Vec<&'a Benchmark>);

impl<'a> Rows<'a> {
    fn of(&self, pattern: Pattern) -> impl Iterator<Item = &'a Benchmark> {
        self.0.iter().copied().filter(move |row| row.pattern == pattern.name())
    }

    fn find(&self, pattern: Pattern, wanted: impl Fn(&Benchmark) -> bool) -> Option<&'a Benchmark> {
        self.of(pattern).find(|row| wanted(row))
    }

    fn smallest(&self, pattern: Pattern) -> Option<&'a Benchmark> {
        self.of(pattern).min_by_key(|row| (row.size_bytes, row.nodes))
    }

    /// Cycle time of a farm as the note takes it: four senders of 1 kB.
    fn farm(&self, pattern: Pattern, compute_us: f64) -> Option<f64> {
        self.farms(pattern).find(|row| row.compute_us == compute_us).and_then(cycle_us)
    }

    fn farms(&self, pattern: Pattern) -> impl Iterator<Item = &'a Benchmark> {
        self.of(pattern).filter(|row| row.nodes == NOTE_FARM_NODES && row.size_bytes == NOTE_DATA_BYTES as u64)
    }

    /// `1 - a / t(0)` in percent, where `a` is the mean of `t(d) - d`.
    fn overlap(&self) -> Option<f64> {
        let alone = self.farm(Pattern::PushFarm, 0.0)?;
        let excess: Vec<_> = self
            .farms(Pattern::PushFarm)
            .filter(|row| row.compute_us > 0.0)
            .filter_map(|row| Some(cycle_us(row)? - row.compute_us))
            .collect();
        let mean = excess.iter().sum::<f64>() / excess.len() as f64;
        (!excess.is_empty() && alone > 0.0).then(|| 100.0 * (1.0 - mean / alone))
    }

    /// The growth with twice the receivers, of outfarming over that of broadcast: 2 to 4, 4 to 8 and so on, on average. The
    /// sizes are those of the note, of which the smallest tells most about the system.
    fn broadcast_quality(&self) -> Option<f64> {
        let size = self.smallest(Pattern::Outfarming)?.size_bytes;
        let growth = |pattern| {
            let time = |receivers: u16| {
                self.find(pattern, |row| row.size_bytes == size && row.nodes == receivers + 1).and_then(cycle_us)
            };
            let ratios: Vec<_> = [2, 4, 8].iter().filter_map(|&n| Some(time(2 * n)? / time(n)?)).collect();
            (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
        };
        Some(growth(Pattern::Outfarming)? / growth(Pattern::Broadcast)?)
    }

    fn streams(&self) -> impl Iterator<Item = &'a Benchmark> {
        self.of(Pattern::OneWay).chain(self.of(Pattern::Pairs).filter(|row| row.nodes == 2))
    }

    /// The smallest message that reaches half of the highest throughput, on a line between the sizes measured.
    fn half_peak(&self) -> Option<f64> {
        let mut rows: Vec<_> = self.streams().map(|row| (row.size_bytes as f64, row.bytes_per_s)).collect();
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        let half = rows.iter().map(|row| row.1).reduce(f64::max)? / 2.0;
        let above = rows.iter().position(|row| row.1 >= half)?;
        let (size, rate) = rows[above];
        Some(match above.checked_sub(1).map(|below| rows[below]) {
            Some((smaller, lower)) => smaller + (size - smaller) * (half - lower) / (rate - lower),
            None => size,
        })
    }
}
