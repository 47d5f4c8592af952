//! Traffic patterns for real: the machines of a simulation over a message layer.

use crate::OnlySimulated;
use evb_bench::{BenchError, LayerChoice, NodeLauncher, NodeResult, RECEIVED, RECEIVED_BYTES, SENT_BYTES, Work, times};
use evb_core::{Frequency, NodeId, Time};
use evb_experiment::{Load, Plan};
use evb_node::{NodeError, Observer, RunError};
use evb_patterns::Pattern;
use evb_protocol::Config;
use evb_record::steady::{DONE, ENDED, Series, Steady};
use evb_record::{Events, Finding, FindingKind, Latency, Record, RecordKind, Trigger};
use evb_unit::{Account, ManagerReport, Offered, Places, Report};
use std::sync::atomic::AtomicBool;

/// Carries out the traffic of a plan for real. `note` takes messages about long steps.
///
/// The record is like that of a simulation of the same plan: messages and cycles count as its events do.
///
/// # Errors
/// If the layer does not work here, a source cannot be opened, or a node was lost.
pub fn run_traffic(work: &Work, place: &NodeLauncher<'_>, note: &mut dyn FnMut(&str)) -> Result<Record, BenchError> {
    let nodes = place.carry_out(work, note)?;
    Ok(Measured { plan: work.plan(), work, nodes: &nodes }.record(&place.layer.to_string()))
}

/// Carries out traffic with threads of this process.
pub(crate) fn in_threads(work: &Work, observer: &mut dyn Observer) -> Result<Record, RunError> {
    let name = work.plan().transport.info().name;
    let layer = LayerChoice::of(&work.plan().transport).ok_or(OnlySimulated::Transport(name))?;
    let place = NodeLauncher { layer, cores: Vec::new(), stop: &AtomicBool::new(false), launch: None };
    let result = run_traffic(work, &place, &mut |text| observer.note(text));
    result.map_err(|error| NodeError { message: error.to_string(), hint: error.hint().map(str::to_owned) }.into())
}

/// The traffic that nodes have measured.
struct Measured<'a> {
    plan: &'a Plan,
    work: &'a Work,
    nodes: &'a [NodeResult],
}

impl Measured<'_> {
    fn record(&self, transport: &str) -> Record {
        let series = self.series();
        let warmup = self.plan.run.warmup.map(|warmup| Time::ZERO + warmup);
        let steady = Steady::find(&series, warmup, series.ended_at());
        let rate = |series: &Series, count| series.rate(steady.window, count);
        let places = Places::new(self.plan);
        let rates = |count, nodes: usize, place: &dyn Fn(NodeId) -> Option<usize>| {
            let mut rates = vec![0.0; nodes];
            for (node, result) in (1..).map(NodeId).zip(self.nodes) {
                if let Some(place) = place(node) {
                    rates[place] = rate(&result.series, count);
                }
            }
            rates
        };
        let received = |count| rates(count, places.destinations(), &|node| places.destination(node));
        let bytes = received(RECEIVED_BYTES);
        Record {
            protocol: self.work.pattern().name().into(),
            transport: transport.into(),
            seconds: series.ended_at().since(Time::ZERO).as_secs_f64(),
            event_rate_hz: rate(&series, ENDED),
            fragment_rate_hz: received(RECEIVED).iter().sum(),
            throughput_bytes_per_s: bytes.iter().sum(),
            goodput_bytes_per_s: Some(bytes.iter().sum()),
            per_destination_bytes_per_s: bytes,
            per_source_bytes_per_s: rates(SENT_BYTES, places.sources(), &|node| places.source(node)),
            ..self.account().assemble(RecordKind::Run, self.plan, (&series, &steady), &self.offered())
        }
        .judged()
    }

    fn sum(&self, of: impl Fn(&NodeResult) -> u64) -> u64 {
        self.nodes.iter().map(of).sum()
    }

    /// Processors that gather for one event, or 1 for other patterns.
    fn processors(&self) -> u64 {
        match self.work.pattern() {
            Pattern::Gather { processors, .. } => (*processors).into(),
            _ => 1,
        }
    }

    /// The counts of all nodes over time. An event that several processors gather is done when they are.
    fn series(&self) -> Series {
        let all: Vec<_> = self.nodes.iter().map(|node| node.series.clone()).collect();
        let processors = self.processors();
        Series::sum(&all).divided(ENDED, processors).divided(DONE, processors)
    }

    fn account(&self) -> Account {
        let mut account = Account::of_traffic(&self.plan.building);
        account.report(Config::EVENT_MANAGER, Report::Manager(self.manager()));
        let clamped = self.sum(|node| node.lengthened);
        if clamped > 0 {
            let message = format!(
                "{clamped} messages were drawn shorter than {} B, which they need to be timed, and had that length",
                evb_bench::SMALLEST_STAMPED
            );
            account.find(Finding::new(FindingKind::Lengthened, "readout.source", message));
        }
        account
    }

    /// Messages, cycles or events, in the words of an event manager.
    fn manager(&self) -> ManagerReport {
        let corrupted = self.sum(|node| node.corrupted);
        let (triggered, ended) = match self.work.pattern() {
            // Those that all nodes know: when a run is stopped, some may know one more.
            Pattern::Gather { .. } => {
                let all = self.nodes.iter().map(|node| node.offered).min().unwrap_or(0);
                (all, (self.sum(|node| node.ended) / self.processors()).min(all))
            }
            _ => (self.sum(|node| node.all_sent), self.sum(|node| node.all_messages)),
        };
        let offered = match self.work.pattern() {
            Pattern::Gather { .. } => triggered,
            _ => self.sum(|node| node.offered),
        };
        let (lost, incomplete) = (triggered.saturating_sub(ended), corrupted.min(ended));
        let events = Events { triggered, built: ended - incomplete, incomplete, lost, ..Events::default() };
        let times = times(self.nodes.iter().map(|node| &node.times)).unwrap_or_default();
        ManagerReport {
            events,
            trigger: Trigger { offered, inhibited: self.sum(|node| node.refused), ..Trigger::default() },
            latency_us: Latency {
                mean: Some(times.mean * 1e-3),
                p50: times.p50 * 1e-3,
                p99: times.p99 * 1e-3,
                p999: times.p999 * 1e-3,
                max: times.max * 1e-3,
            },
            ..ManagerReport::default()
        }
    }

    /// The load that the experiment file asks for.
    fn offered(&self) -> Offered {
        let senders = match self.work.pattern() {
            Pattern::Gather { .. } => 1,
            _ => self.plan.building.readout_units,
        };
        let rate_hz = match self.work.load() {
            Load::Rate { rate, .. } => Some(Frequency::as_hertz(rate) * f64::from(senders)),
            Load::Saturating | Load::Fraction { .. } | Load::Slots { .. } => None,
        };
        Offered { key: "workload.rate", what: "messages", rate_hz }
    }
}
