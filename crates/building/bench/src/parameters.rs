//! The parameters of ATLAS DAQ note 77 (section 5.1), derived from the rows of a suite as the note defines them.

#[cfg(test)]
pub(crate) mod tests;

use crate::{
    benchmark::Benchmark as Pattern,
    line::fit,
    suite::{NOTE_DATA_BYTES, NOTE_FARM_NODES},
};
use evb_record::{Benchmark, Origin, Parameters, RecordKind};
use std::{collections::BTreeMap, fmt::Display};

/// The parameters of one transport; parameters without the necessary rows are left out.
#[must_use]
pub fn parameters(transport: &str, rows: &[Benchmark]) -> Parameters {
    let rows = Rows(rows.iter().filter(|row| row.transport == transport && row.settings.rate_hz.is_none()).collect());
    let mut taken_from = BTreeMap::new();
    let mut take = |name: &str, derived: Option<Derived<'_>>| {
        let Derived { value, rows } = derived?;
        taken_from.insert(name.to_owned(), origin(&rows));
        Some(value)
    };
    let line = rows.line();
    let of_line = |value: fn(&[f64; 3]) -> f64| {
        line.as_ref().map(|(line, rows)| Derived { value: value(line), rows: rows.clone() })
    };
    Parameters {
        kind: RecordKind::Parameters,
        transport: transport.into(),
        latency_us: take("latency_us", rows.latency()),
        two_way_us: take("two_way_us", rows.two_way()),
        overhead_us: take("overhead_us", rows.overhead()),
        bandwidth_mb_per_s: take("bandwidth_mb_per_s", rows.bandwidth()),
        broadcast_quality: take("broadcast_quality", rows.broadcast_quality()),
        funnel_us: take("funnel_us", rows.farm(Pattern::Funnel)),
        push_farm_us: take("push_farm_us", rows.farm(Pattern::PushFarm)),
        pull_farm_us: take("pull_farm_us", rows.farm(Pattern::PullFarm)),
        overlap_percent: take("overlap_percent", rows.overlap()),
        half_peak_bytes: take("half_peak_bytes", rows.half_peak()),
        peak_rate_m_per_s: take("peak_rate_m_per_s", rows.peak_rate()),
        fixed_overhead_us: take("fixed_overhead_us", of_line(|line| line[0])),
        rate_mb_per_s: take("rate_mb_per_s", of_line(|line| line[1])),
        fit_error_percent: take("fit_error_percent", of_line(|line| line[2])),
        taken_from,
    }
}

/// A parameter and the rows that it was taken from.
struct Derived<'a> {
    value: f64,
    rows: Vec<&'a Benchmark>,
}

impl<'a> Derived<'a> {
    fn of(row: &'a Benchmark, value: f64) -> Self {
        Self { value, rows: vec![row] }
    }
}

/// Rows as `ping-pong, 8 B, 2 nodes`: common values once, and ends of ranges.
fn origin(rows: &[&Benchmark]) -> Origin {
    let mut patterns: Vec<_> = rows.iter().map(|row| row.pattern.as_str()).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let sizes = range(rows.iter().map(|row| row.settings.size_bytes));
    let nodes = range(rows.iter().map(|row| row.settings.nodes));
    let longest = rows.iter().map(|row| row.settings.compute_us).fold(0.0, f64::max);
    let computing = if longest > 0.0 { format!(", computing up to {longest:.0} us") } else { String::new() };
    Origin {
        rows: format!("{}, {sizes} B, {nodes} nodes{computing}", patterns.join(" and ")),
        trusted: rows.iter().all(|row| row.trusted && row.good),
    }
}

fn range<T: Ord + Copy + Display>(values: impl Iterator<Item = T> + Clone) -> String {
    match (values.clone().min(), values.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.map_or_else(String::new, |value| value.to_string()),
    }
}

/// Messages per second of each pair of nodes.
fn per_pair(row: &Benchmark) -> f64 {
    row.messages_per_s / f64::from(row.settings.nodes / 2).max(1.0)
}

/// Mean time of a cycle: the inverse of its frequency.
fn cycle_us(row: &Benchmark) -> Option<f64> {
    row.cycle_ns.map(|_| row.launches.median * 1e-3)
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
        self.of(pattern).min_by_key(|row| (row.settings.size_bytes, row.settings.nodes))
    }

    fn latency(&self) -> Option<Derived<'a>> {
        let row = self.smallest(Pattern::PingPong)?;
        Some(Derived::of(row, row.half_round_trip_ns?.p50 * 1e-3))
    }

    fn two_way(&self) -> Option<Derived<'a>> {
        let row = self.smallest(Pattern::TwoWay)?;
        Some(Derived::of(row, cycle_us(row)?))
    }

    fn overhead(&self) -> Option<Derived<'a>> {
        let row = self.smallest(Pattern::Pairs)?;
        (row.messages_per_s > 0.0).then(|| Derived::of(row, 1e6 / per_pair(row)))
    }

    fn bandwidth(&self) -> Option<Derived<'a>> {
        let row = self.find(Pattern::Pairs, |row| row.settings.size_bytes == NOTE_DATA_BYTES as u64)?;
        Some(Derived::of(row, per_pair(row) * row.settings.size_bytes as f64 * 1e-6))
    }

    /// Cycle time of a farm as the note defines it: four senders of 1 kB, no computing.
    fn farm(&self, pattern: Pattern) -> Option<Derived<'a>> {
        let row = self.farms(pattern).find(|row| row.settings.compute_us == 0.0)?;
        Some(Derived::of(row, cycle_us(row)?))
    }

    fn farms(&self, pattern: Pattern) -> impl Iterator<Item = &'a Benchmark> {
        self.of(pattern)
            .filter(|row| row.settings.nodes == NOTE_FARM_NODES && row.settings.size_bytes == NOTE_DATA_BYTES as u64)
    }

    /// `1 - a / t(0)` in percent, where `a` is the mean of `t(d) - d`. The system often interrupts a cycle that
    /// computes for long, whatever the message layer is; so t(d) is the median of the cycles.
    fn overlap(&self) -> Option<Derived<'a>> {
        let alone = self.farm(Pattern::PushFarm)?;
        let computing: Vec<_> = self.farms(Pattern::PushFarm).filter(|row| row.settings.compute_us > 0.0).collect();
        let excess: Vec<_> =
            computing.iter().filter_map(|row| Some(row.cycle_ns?.p50 * 1e-3 - row.settings.compute_us)).collect();
        let mean = excess.iter().sum::<f64>() / excess.len() as f64;
        let rows = [alone.rows, computing].concat();
        (!excess.is_empty() && alone.value > 0.0).then(|| Derived { value: 100.0 * (1.0 - mean / alone.value), rows })
    }

    /// The growth when the number of receivers doubles, of outfarming over that of broadcast: 2 to 4, 4 to 8 and so on,
    /// on average. The sizes are those of the note, of which the smallest shows most of the system.
    fn broadcast_quality(&self) -> Option<Derived<'a>> {
        let size = self.smallest(Pattern::Outfarming)?.settings.size_bytes;
        let (outfarming, broadcast) = (self.growth(Pattern::Outfarming, size)?, self.growth(Pattern::Broadcast, size)?);
        let rows = [outfarming.rows, broadcast.rows].concat();
        Some(Derived { value: outfarming.value / broadcast.value, rows })
    }

    fn growth(&self, pattern: Pattern, size: u64) -> Option<Derived<'a>> {
        let of = |receivers: u16| {
            self.find(pattern, |row| row.settings.size_bytes == size && row.settings.nodes == receivers + 1)
        };
        let doubled = [2, 4, 8].iter().filter_map(|&n| {
            let (half, whole) = (of(n)?, of(2 * n)?);
            Some((cycle_us(whole)? / cycle_us(half)?, [half, whole]))
        });
        let (ratios, rows): (Vec<_>, Vec<_>) = doubled.unzip();
        let value = ratios.iter().sum::<f64>() / ratios.len() as f64;
        (!ratios.is_empty()).then(|| Derived { value, rows: rows.concat() })
    }

    fn streams(&self) -> impl Iterator<Item = &'a Benchmark> {
        self.of(Pattern::OneWay).chain(self.of(Pattern::Pairs).filter(|row| row.settings.nodes == 2))
    }

    fn peak_rate(&self) -> Option<Derived<'a>> {
        let row = self.streams().max_by(|one, other| per_pair(one).total_cmp(&per_pair(other)))?;
        Some(Derived::of(row, per_pair(row) * 1e-6))
    }

    /// The smallest message that reaches half of the highest throughput, interpolated between the measured sizes.
    fn half_peak(&self) -> Option<Derived<'a>> {
        let mut rows: Vec<_> = self.streams().collect();
        rows.sort_by_key(|row| row.settings.size_bytes);
        let half = rows.iter().map(|row| row.bytes_per_s).reduce(f64::max)? / 2.0;
        let above = rows.iter().position(|row| row.bytes_per_s >= half)?;
        let at = |row: &Benchmark| (row.settings.size_bytes as f64, row.bytes_per_s);
        let (size, rate) = at(rows[above]);
        let value = match above.checked_sub(1).map(|below| at(rows[below])) {
            Some((smaller, lower)) => smaller + (size - smaller) * (half - lower) / (rate - lower),
            None => size,
        };
        Some(Derived { value, rows })
    }

    /// Half the round trip against the size as a line: its overhead in microseconds, rate in MB/s and error in percent. The
    /// elapsed time of a message is half the time of its echo, as in "The use of Ethernet in the ATLAS second level trigger"
    /// (1998), figure 5.
    fn line(&self) -> Option<([f64; 3], Vec<&'a Benchmark>)> {
        let rows: Vec<_> = self.of(Pattern::PingPong).filter(|row| row.half_round_trip_ns.is_some()).collect();
        let time = |row: &&Benchmark| Some((row.settings.size_bytes as f64, row.half_round_trip_ns?.p50));
        let line = fit(&rows.iter().filter_map(time).collect::<Vec<_>>())?;
        Some(([line.overhead * 1e-3, 1e3 / line.slope, line.error * 100.0], rows))
    }
}
