//! Counts of background traffic. No other count has anything of it, but for packets and links.

use crate::simulation::Simulation;
use evb_core::Time;
use evb_experiment::Plan;
use evb_record::Background;
use evb_unit::Latencies;

/// The counts of all background traffic, by table.
pub(crate) struct BackgroundCounts {
    tables: Vec<TableCounts>,
    /// Time at which all of it was stopped with the workload.
    stopped: Option<Time>,
}

#[derive(Default)]
struct TableCounts {
    sent: u64,
    sent_bytes: u64,
    arrived: u64,
    arrived_bytes: u64,
    lost: u64,
    refused: u64,
    /// Time of the last arrival.
    last: Time,
    /// Bytes that arrived in the measured time.
    measured_bytes: u64,
    /// Latencies of messages that arrived in that time.
    latencies: Latencies,
    /// End of that time, if it is known.
    until: Option<Time>,
}

impl BackgroundCounts {
    pub(super) fn new(plan: &Plan) -> Self {
        let table = |until: Option<Time>| TableCounts { until, ..TableCounts::default() };
        let ends = plan.background.iter().map(|background| background.until.map(|until| Time(until.0)));
        Self { tables: ends.map(table).collect(), stopped: None }
    }

    /// The measurement begins.
    pub(super) fn begin_to_measure(&mut self) {
        for table in &mut self.tables {
            table.measured_bytes = 0;
            table.latencies.reset();
        }
    }

    /// A message was passed to the network.
    pub(crate) fn send(&mut self, index: usize, bytes: u32) {
        let table = &mut self.tables[index];
        table.sent += 1;
        table.sent_bytes += u64::from(bytes);
    }

    /// A message that was offered at some time was delivered to its node.
    pub(crate) fn arrive(&mut self, now: Time, index: usize, born: Time, bytes: u32) {
        let table = &mut self.tables[index];
        table.arrived += 1;
        table.arrived_bytes += u64::from(bytes);
        table.last = now;
        if self.stopped.is_none() && table.until.is_none_or(|until| now <= until) {
            table.measured_bytes += u64::from(bytes);
            table.latencies.record(now.since(born), 1);
        }
    }

    /// A message was lost.
    pub(crate) fn lose(&mut self, index: usize) {
        self.tables[index].lost += 1;
    }

    /// A message was refused, since too many wait at its sender.
    pub(crate) fn refuse(&mut self, index: usize) {
        self.tables[index].refused += 1;
    }

    /// Everything stops with the workload.
    pub(crate) fn stop(&mut self, now: Time) {
        self.stopped.get_or_insert(now);
    }

    /// Adds the counts of another partition.
    pub(super) fn join(&mut self, other: &Self) {
        for (table, other) in self.tables.iter_mut().zip(&other.tables) {
            table.sent += other.sent;
            table.sent_bytes += other.sent_bytes;
            table.arrived += other.arrived;
            table.arrived_bytes += other.arrived_bytes;
            table.lost += other.lost;
            table.refused += other.refused;
            table.last = table.last.max(other.last);
            table.measured_bytes += other.measured_bytes;
            table.latencies.join(&other.latencies);
        }
    }

    /// The record, of a measurement that began at `from`.
    pub(super) fn records(&self, simulation: &Simulation<'_>, from: Time) -> Vec<Background> {
        let plans = simulation.plan.background.iter().zip(simulation.background()).zip(&self.tables);
        plans
            .map(|((plan, arrivals), counts)| {
                let traffic = &plan.traffic;
                let senders = traffic.config.senders.count;
                let all = traffic.messages.map(|messages| messages.saturating_mul(senders.into()));
                let is_done = all.is_some_and(|all| counts.arrived + counts.lost + counts.refused >= all);
                let end = self.stopped.unwrap_or(simulation.now()).min(counts.until.unwrap_or(Time::MAX));
                let end = if is_done { end.min(counts.last) } else { end };
                let begin = from.max(Time(plan.from.0));
                let seconds = end.since(begin.min(end)).as_secs_f64();
                let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
                Background {
                    name: plan.name.clone(),
                    pattern: traffic.config.pattern.name().into(),
                    senders,
                    receivers: traffic.config.receivers.count,
                    from_s: begin.since(Time::ZERO).as_secs_f64(),
                    seconds,
                    sent: counts.sent,
                    sent_bytes: counts.sent_bytes,
                    messages: counts.arrived,
                    bytes: counts.arrived_bytes,
                    lost: counts.lost,
                    refused: counts.refused,
                    offered_bytes_per_s: arrivals.offered_bytes_per_s(),
                    throughput_bytes_per_s: rate(counts.measured_bytes),
                    latency_us: counts.latencies.summary(),
                }
            })
            .collect()
    }
}
